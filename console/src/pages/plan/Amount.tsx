// A number to slide and to type.
import { Input, NumberInput, Slider } from "@mantine/core";
import { useId } from "react";
import classes from "./plan.module.css";

interface AmountProps {
  label: string;
  hint?: string;
  /** Null: not said. */
  value: number | null;
  /** What stands in the field, and where the slider is, while nothing is said. */
  otherwise?: string;
  onChange: (value: number | null) => void;
  /** How far the slider goes; larger numbers can be typed. */
  slides: number;
  most: number;
}

export function Amount({ label, hint, value, otherwise, onChange, slides, most }: AmountProps) {
  const id = useId();
  return (
    <div className={classes.amount}>
      <Input.Label htmlFor={id} size="xs">
        {label}
      </Input.Label>
      {hint && <div className={classes.hint}>{hint}</div>}
      <Slider
        value={Math.min(value ?? 1, slides)}
        onChange={onChange}
        min={1}
        max={slides}
        label={null}
        size="sm"
        thumbLabel={label}
        thumbSize={20}
      />
      <NumberInput
        id={id}
        value={value ?? ""}
        placeholder={otherwise}
        onChange={(typed) =>
          onChange(typeof typed === "number" && typed >= 1 ? typed : otherwise === undefined ? value : null)
        }
        min={1}
        max={most}
        clampBehavior="strict"
        allowDecimal={false}
      />
    </div>
  );
}
