// The browser's device with short pauses between its polls and requests for candidates, so that many fall into a session:
// the times are drawn as ever. two_readers.py serves it in the place of the worker's script.
import { performanceSettings } from "../../web/device/feed_settings";
import "../../web/device/worker";

const { make } = performanceSettings;
const HURRIED = { sync_poll_sec: 4, recall_poll_sec: 3, training_poll_sec: 3, training_send_sec: 1 };
Object.assign(performanceSettings, { make: (given: object) => make.call(performanceSettings, { ...given, ...HURRIED }) });
