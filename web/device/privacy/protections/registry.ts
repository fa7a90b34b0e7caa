// The protections that this device supports, by kind; others are declined by name.
import { ProtectionTooWeak } from "../../errors";
import type { Protection } from "../../protocol/protections";
import type { DeviceProtection } from "./protection";
import { SecureSumProtection } from "./secure_sum";

/** The device's side of a wire protection. Throws ProtectionTooWeak for an unsupported kind. */
export function resolve(protection: Protection): DeviceProtection {
  if (protection.kind === "secure_sum") return new SecureSumProtection(protection);
  throw new ProtectionTooWeak(`'${protection.kind}' is none that this device gives.`);
}
