// What a browser keeps of a person between visits. It goes with their session: the next one may be another person.
export const RECENT_SEARCHES = "butler-recent-searches";

export function forgetPerson(storage: Pick<Storage, "removeItem"> = localStorage): void {
  storage.removeItem(RECENT_SEARCHES);
}
