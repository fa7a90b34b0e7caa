// What each request that says nothing of its reader is for, in the log on Privacy.
import requests from "../../../device_app/uplink/requests.toml";
import { Prose } from "../prose";

export const REQUESTS = new Prose(requests);
