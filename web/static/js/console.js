// @ts-check
// Entry of every page of the console.

import { watchRound } from "./live.js";
import { sortTables } from "./sort.js";

watchRound();
sortTables();
