// Sentences that need to be read, with how bad they are.
import { HealthIcon, type Health } from "../../components/StatusBadge";
import classes from "./pools.module.css";

interface NotesProps {
  health: Health;
  title: string;
  notes: readonly string[];
}

export function Notes({ health, title, notes }: NotesProps) {
  if (notes.length === 0) return null;
  return (
    <div className={classes.notes} data-health={health}>
      <HealthIcon health={health} size={17} />
      <div>
        <strong>{title}</strong>
        <ul>
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}
