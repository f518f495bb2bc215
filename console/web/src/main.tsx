import { render } from "preact";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import { App } from "./app.js";
import { start } from "./session.js";

render(<App />, document.getElementById("app")!);
void start();
