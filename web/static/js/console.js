// @ts-check
// Entry point of every page of the console.

import { watchRound } from "./live.js";
import { sayOnce } from "./said.js";
import { sortTables } from "./sort.js";

sayOnce();
watchRound();
sortTables();
