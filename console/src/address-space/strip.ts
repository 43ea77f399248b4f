// A strip in words.
import { plural } from "../words";

export function stripInWords(strip: readonly number[]): string {
  const given = strip.filter((percent) => percent >= 0);
  if (given.length === 0) return "Hands out nothing";
  const full = given.filter((percent) => percent >= 100).length;
  const empty = given.filter((percent) => percent === 0).length;
  const part = (value: number) => plural(value, "part");
  const outside = strip.length - given.length;
  return [
    `Of ${part(strip.length)} of the network`,
    `${part(full)} full`,
    `${part(given.length - full - empty)} partly held`,
    `${part(empty)} free`,
    ...(outside > 0 ? [`${part(outside)} not handed out`] : []),
  ].join(", ");
}
