/** Starts the page of a worker's console. */
import { render } from "preact";
import { App } from "./app.tsx";
import { Store } from "./state/store.ts";

const place = document.querySelector("#console");
if (place !== null) render(<App store={new Store()} />, place);
