import { Link } from "react-router";
import { paths } from "../paths";
import classes from "./Shell.module.css";

export function Logo() {
  return (
    <Link to={paths.overview} className={classes.brand} aria-label="Butler, overview">
      <LogoMark />
      <span className={classes.brandName}>Butler</span>
    </Link>
  );
}

export function LogoMark({ size = 22 }: { size?: number }) {
  return <img src="/favicon.svg" width={size} height={size} alt="" />;
}
