// The way in: a password, an identity provider, or the one-time link of a Butler on one machine.
import { Button, Divider, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useEffect } from "react";
import { Navigate, useSearchParams } from "react-router";
import { useLoginMethods, useMe, usePasswordLogin } from "../api/session";
import type { LoginMethods } from "../api/types";
import { Loaded } from "../components/Loaded";
import { ProblemAlert } from "../components/ProblemAlert";
import classes from "./LoginPage.module.css";
import { LogoMark } from "./Logo";
import { ThemeSwitch } from "./ThemeSwitch";

export function LoginPage() {
  const me = useMe();
  const methods = useLoginMethods();
  const next = useNext();
  useEffect(() => {
    document.title = "Log in · Butler";
  }, []);
  if (me.data) return <Navigate to={next} replace />;
  return (
    <main className={classes.page}>
      <div className={classes.corner}>
        <ThemeSwitch />
      </div>
      <div className={classes.card}>
        <Stack gap="lg">
          <Stack gap={6} align="center">
            <LogoMark size={36} />
            <Title order={1}>Log in to Butler</Title>
            <Text c="dimmed" fz="sm" ta="center">
              Addresses and clusters of your tenants
            </Text>
          </Stack>
          <Loaded query={methods}>{(known) => <Ways methods={known} next={next} />}</Loaded>
        </Stack>
      </div>
    </main>
  );
}

/** Where a person wanted to go before they were sent here; never another site. */
function useNext(): string {
  const [params] = useSearchParams();
  const next = params.get("next") ?? "/";
  return next.startsWith("/") && !next.startsWith("//") && !next.includes("\\") ? next : "/";
}

function Ways({ methods, next }: { methods: LoginMethods; next: string }) {
  const ways = [
    methods.oidc && <OidcButton key="oidc" name={methods.oidcName} next={next} />,
    methods.password && <PasswordForm key="password" />,
    methods.local && <LocalHint key="local" alone={!methods.oidc && !methods.password} />,
  ].filter(Boolean);
  return (
    <Stack gap="md">
      {ways.length === 0 && (
        <Text fz="sm">
          No way to log in is set up. An administrator of this Butler can turn on passwords or an identity provider.
        </Text>
      )}
      {ways.flatMap((way, index) => (index === 0 ? [way] : [<Divider key={index} label="or" />, way]))}
    </Stack>
  );
}

function OidcButton({ name, next }: { name: string; next: string }) {
  return (
    <Button component="a" href={`/api/v1/login/oidc?next=${encodeURIComponent(next)}`} size="sm" fullWidth>
      Continue with {name || "your identity provider"}
    </Button>
  );
}

function PasswordForm() {
  const login = usePasswordLogin();
  const form = useForm({
    initialValues: { user: "", password: "" },
    validate: {
      user: (user) => (user ? null : "Your user name"),
      password: (password) => (password ? null : "Your password"),
    },
  });
  return (
    <form onSubmit={form.onSubmit((values) => login.mutate(values))} noValidate>
      <Stack gap="sm">
        {login.isError && <ProblemAlert error={login.error} />}
        <TextInput
          label="User name"
          size="sm"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          {...form.getInputProps("user")}
        />
        <PasswordInput label="Password" size="sm" autoComplete="current-password" {...form.getInputProps("password")} />
        <Button type="submit" size="sm" loading={login.isPending} fullWidth>
          Log in
        </Button>
      </Stack>
    </form>
  );
}

function LocalHint({ alone }: { alone: boolean }) {
  return (
    <Text fz="sm" c={alone ? undefined : "dimmed"} ta="center">
      This Butler runs on one machine: open the link that <code>make run</code> printed. It works once; when it was
      used, <code>butleradm server link</code> prints another.
    </Text>
  );
}
