import { describe, expect, test } from "vitest";
import { fieldOfError, readForm, writeForm } from "./tenantForm";

const MANIFEST = `# Ordered by Finance
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata:
  name: ledger
  namespace: team-finance
  labels: {cost-centre: "4711"}
spec:
  kubernetesVersion: v1.33.2
  workers:
    replicas: 3 # two and a spare
    machineTemplate:
      os: {type: talos}
  addons:
    ingress:
      enabled: false
`;

describe("the form", () => {
  test("shows what the text says, and nothing for what it does not", () => {
    const { form } = readForm(MANIFEST);
    expect(form).toMatchObject({ name: "ledger", namespace: "team-finance", workers: "3", team: "", lbPoolSize: "" });
  });

  test("changes only its own field: comments and unknown fields stay", () => {
    const text = writeForm(MANIFEST, { workers: "5" });
    expect(text).toBe(MANIFEST.replace("replicas: 3", "replicas: 5"));
  });

  test("adds what was not there, as a number where it is one", () => {
    const text = writeForm(MANIFEST, { lbPoolSize: "4", team: "finance" });
    expect(text).toContain("lbPoolSize: 4\n");
    expect(text).toContain("teamRef:\n    name: finance\n");
    expect(readForm(text).form).toMatchObject({ lbPoolSize: "4", team: "finance" });
  });

  test("takes away what was emptied, with parents that would be empty, but never what others wrote beside it", () => {
    expect(writeForm(writeForm(MANIFEST, { team: "finance" }), { team: "" })).toBe(MANIFEST);
    const withCpu = writeForm(MANIFEST, { cpu: "8" });
    const without = writeForm(withCpu, { cpu: "" });
    expect(without).toContain("type: talos");
    expect(without).not.toContain("cpu");
  });

  test("writes a field to a line, also into objects that were empty", () => {
    expect(writeForm("metadata: {}\n", { name: "a", namespace: "b" })).toBe("metadata:\n  name: a\n  namespace: b\n");
    expect(writeForm("metadata:\n", { name: "a" })).toBe("metadata:\n  name: a\n");
    expect(writeForm("metadata: word\n", { name: "a" })).toBe("metadata: word\n");
  });

  test("puts what is new where people look for it", () => {
    const text = writeForm("spec:\n  workers:\n    replicas: 1\n", {
      lbPoolSize: "2",
      provider: "lab",
      version: "v1.33.2",
    });
    expect(text.match(/^ {2}\w+/gm)).toEqual([
      "  kubernetesVersion",
      "  providerConfigRef",
      "  workers",
      "  networking",
    ]);
  });

  test("keeps what is no number as it was typed, so that the server can say what is wrong with it", () => {
    expect(writeForm(MANIFEST, { workers: "many" })).toContain("replicas: many # two and a spare");
  });

  test("and the text come to the same, whichever was edited", () => {
    const edited = MANIFEST.replace("v1.33.2", "v1.34.1");
    expect(readForm(edited).form).toEqual(readForm(writeForm(MANIFEST, { version: "v1.34.1" })).form);
  });
});

describe("a text that is no manifest", () => {
  test("is left alone, and the line is named", () => {
    const broken = "metadata:\n  name: a\n  name: b\n";
    const { form, error } = readForm(broken);
    expect(form).toBeNull();
    expect(error?.line).toBe(3);
    expect(writeForm(broken, { workers: "5" })).toBe(broken);
  });

  test("may be a list or a word", () => {
    expect(readForm("- a\n").error).not.toBeNull();
    expect(readForm("").error).not.toBeNull();
  });

  test("may have a word where an object belongs: the form is empty there", () => {
    expect(readForm("spec: 3\n").form?.workers).toBe("");
  });
});

test("errors find their field", () => {
  expect(fieldOfError("spec.workers.replicas")).toBe("workers");
  expect(fieldOfError("spec.providerConfigRef")).toBe("provider");
  expect(fieldOfError("spec.addons.cni")).toBeNull();
});
