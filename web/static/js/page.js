// @ts-check
// Entry point of every page of the device. Each part only adds convenience to what works without it.

import { keepUpToDate } from "./alike.js";
import { awaitComing } from "./coming.js";
import { enhanceForms } from "./forms.js";
import { keepPage } from "./kept.js";
import { listenToKeys } from "./keys.js";
import { addMore, restoreMore } from "./more.js";
import { keepPlace } from "./place.js";
import { watchPulse } from "./pulse.js";
import { sayOnce } from "./said.js";
import { watchCards } from "./seen.js";
import { holdStill, load } from "./still.js";
import { listenToTools } from "./tools.js";

sayOnce();
void restoreMore().then(keepPlace);
addMore();
enhanceForms(document);
listenToKeys();
listenToTools();
keepUpToDate(() => load(location.href));
watchCards();
holdStill();
watchPulse();
keepPage();
awaitComing();
