// Whose is it? Any address, range or network, or a part of a name.
import { Anchor, Stack, Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import { Link, Navigate, useParams, useSearchParams } from "react-router";
import { useSearch } from "../../api/estate";
import type { SearchAnswer } from "../../api/types";
import { EmptyState } from "../../components/EmptyState";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { paths } from "../../paths";
import { Answer } from "./Answer";
import { Hits } from "./Hits";
import { Recent } from "./Recent";
import { SearchField } from "./SearchField";
import { useRecentSearches } from "./useRecentSearches";

export function AddressesPage() {
  const deep = useParams()["*"];
  return deep ? <Navigate to={paths.address(deep)} replace /> : <Search />;
}

function Search() {
  const [params, setParams] = useSearchParams();
  const text = (params.get("q") ?? "").trim();
  const search = useSearch(text);
  const recent = useRecentSearches();
  const field = useRef<HTMLInputElement>(null);
  const results = useRef<HTMLDivElement>(null);
  const { remember } = recent;
  useEffect(() => {
    field.current?.focus();
    // What a link leads to is worth coming back to; what is typed is kept with Enter.
    if (text) remember(text);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once, when the page is opened
  }, []);
  const ask = (next: string) => setParams(next ? { q: next } : {}, { replace: true, preventScrollReset: true });
  return (
    <Page
      title="Addresses"
      subtitle={
        <>
          Whose an address is, was, or will be. Every request is among the{" "}
          <Anchor component={Link} to={paths.allocations} fz="inherit">
            allocations
          </Anchor>
          .
        </>
      }
    >
      <SearchField
        ref={field}
        text={text}
        onAsk={ask}
        onEnter={(asked) => {
          ask(asked);
          remember(asked);
        }}
        onDown={() => results.current?.querySelector("a")?.focus()}
      />
      <div ref={results}>
        {text ? (
          <Loaded query={search}>{(found) => <Found text={text} found={found} />}</Loaded>
        ) : (
          <Recent searches={recent.searches} onAsk={ask} onClear={recent.clear} />
        )}
      </div>
    </Page>
  );
}

function Found({ text, found: { address, hits } }: { text: string; found: SearchAnswer }) {
  return (
    <Stack gap="md">
      <div role="status" className="visually-hidden">
        {address ? "" : hits.length > 0 ? `${hits.length} names found` : "Nothing found"}
      </div>
      {address && <Answer answer={address} />}
      {hits.length > 0 && <Hits hits={hits} />}
      {!address && hits.length === 0 && (
        <Panel title="Nothing found">
          <EmptyState title={`Nothing is called “${text}”, and it is no address`}>
            Write an address (10.40.0.7), a range (10.40.0.7-10.40.0.20), a network (10.40.0.0/24), or a part of a name.
            <Text fz="xs" mt={4}>
              What you may not read is not found, either.
            </Text>
          </EmptyState>
        </Panel>
      )}
    </Stack>
  );
}
