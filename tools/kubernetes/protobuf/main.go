// Writes src/butler/local/apiserver/builtin_protobuf.json: which number each field of the built-in kinds has in
// protobuf, for the requests of clients that send nothing else (client-go, and with it helm, for built-in kinds).
// Only facts are taken: the numbers, wire types and JSON names that the Go structs carry in their tags.
//
//	cd tools/kubernetes/protobuf && GOFLAGS=-mod=mod go run . > ../../../src/butler/local/apiserver/builtin_protobuf.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var kinds = map[string][]any{
	"v1": {
		core.Binding{}, core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.Namespace{}, core.Node{},
		core.PersistentVolume{}, core.PersistentVolumeClaim{}, core.Pod{}, core.Secret{}, core.Service{},
		core.ServiceAccount{}, meta.DeleteOptions{},
	},
	"meta.k8s.io/v1":                  {meta.DeleteOptions{}},
	"admissionregistration.k8s.io/v1": {admissionregistration.MutatingWebhookConfiguration{}, admissionregistration.ValidatingWebhookConfiguration{}},
	"apiextensions.k8s.io/v1":         {apiextensions.CustomResourceDefinition{}},
	"apps/v1":                         {apps.DaemonSet{}, apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}},
	"authentication.k8s.io/v1":        {authentication.SelfSubjectReview{}, authentication.TokenRequest{}, authentication.TokenReview{}},
	"authorization.k8s.io/v1": {
		authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
		authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{},
	},
	"autoscaling/v1":               {autoscaling1.Scale{}},
	"autoscaling/v2":               {autoscaling.HorizontalPodAutoscaler{}},
	"batch/v1":                     {batch.CronJob{}, batch.Job{}},
	"coordination.k8s.io/v1":       {coordination.Lease{}},
	"discovery.k8s.io/v1":          {discovery.EndpointSlice{}},
	"events.k8s.io/v1":             {events.Event{}},
	"networking.k8s.io/v1":         {networking.Ingress{}, networking.IngressClass{}, networking.NetworkPolicy{}},
	"policy/v1":                    {policy.Eviction{}, policy.PodDisruptionBudget{}},
	"rbac.authorization.k8s.io/v1": {rbac.ClusterRole{}, rbac.ClusterRoleBinding{}, rbac.Role{}, rbac.RoleBinding{}},
	"scheduling.k8s.io/v1":         {scheduling.PriorityClass{}},
	"storage.k8s.io/v1":            {storage.StorageClass{}},
}

// Types whose JSON is not that of their fields.
var special = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):                                  "time",
	reflect.TypeOf(meta.MicroTime{}):                             "microtime",
	reflect.TypeOf(meta.Duration{}):                              "duration",
	reflect.TypeOf(resource.Quantity{}):                          "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                         "intorstring",
	reflect.TypeOf(runtime.RawExtension{}):                       "raw",
	reflect.TypeOf(meta.FieldsV1{}):                              "raw",
	reflect.TypeOf(apiextensions.JSON{}):                         "raw",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrArray{}):       "either",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrBool{}):        "orbool",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrStringArray{}): "either",
}

type marshaler interface{ Marshal() ([]byte, error) }

var marshals = reflect.TypeOf((*marshaler)(nil)).Elem()

type table struct {
	Kinds map[string]string           `json:"kinds"`
	Types map[string]map[string][]any `json:"types"`
}

func main() {
	found := table{map[string]string{}, map[string]map[string][]any{}}
	for version, objects := range kinds {
		for _, object := range objects {
			t := reflect.TypeOf(object)
			found.Kinds[version+" "+t.Name()] = found.message(t)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(found); err != nil {
		panic(err)
	}
}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], ".") + "." + t.Name()
}

func (found *table) message(t reflect.Type) string {
	n := name(t)
	if _, ok := found.Types[n]; ok {
		return n
	}
	fields := map[string][]any{}
	found.Types[n] = fields
	for i := range t.NumField() {
		field := t.Field(i)
		number := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(number) < 2 {
			continue // TypeMeta: not part of the message
		}
		if _, err := strconv.Atoi(number[1]); err != nil {
			panic(field.Name)
		}
		tag := strings.Split(field.Tag.Get("json"), ",")
		jsonName := tag[0]
		flags := ""
		for _, option := range tag[1:] {
			if option == "inline" {
				flags += "i"
			}
			if option == "omitempty" || option == "omitzero" {
				flags += "o"
			}
		}
		if jsonName == "" && field.Anonymous && !strings.Contains(flags, "i") {
			flags += "i"
		}
		if jsonName == "-" {
			jsonName = strings.ToLower(field.Name[:1]) + field.Name[1:]
		}
		ft := field.Type
		if ft.Kind() == reflect.Pointer {
			flags += "p"
			ft = ft.Elem()
		}
		fields[number[1]] = []any{jsonName, found.kind(ft), flags}
	}
	return n
}

// kind describes a value: a word for a scalar, "[]x" for a list, "{}x" for a map, the name of a message otherwise.
func (found *table) kind(t reflect.Type) string {
	if word, ok := special[t]; ok {
		if word == "either" || word == "orbool" {
			return word + ":" + found.message(t)
		}
		return word
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Pointer:
		return found.kind(t.Elem())
	case reflect.Map:
		return "{}" + found.kind(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Implements(marshals) || reflect.PointerTo(t).Implements(marshals) {
			return "items:" + found.kind(t.Elem()) // a list with a message of its own around it
		}
		return "[]" + found.kind(t.Elem())
	case reflect.Struct:
		return found.message(t)
	}
	panic(t.String())
}
