// The protections that this device can give an update, by kind; the others it declines by name.
import { ProtectionTooWeak } from "../../errors";
import type { Protection } from "../../wire/protections";
import type { DeviceProtection } from "./protection";
import { SecureSumProtection } from "./secure_sum";

/** The device's side of a protection on the wire. Throws ProtectionTooWeak for a kind that it doesn't give. */
export function resolve(protection: Protection): DeviceProtection {
  if (protection.kind === "secure_sum") return new SecureSumProtection(protection);
  throw new ProtectionTooWeak(`'${protection.kind}' is none that this device gives.`);
}
