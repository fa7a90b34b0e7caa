// The protections that this device supports, by kind; others are declined by name.
import { ProtectionTooWeak } from "../../errors";
import type { Protection } from "../../protocol/protections";
import type { DeviceProtection } from "./protection";
import { SecureSumProtection } from "./secure_sum";

type OfKind<K extends Protection["kind"]> = Extract<Protection, { readonly kind: K }>;

/** To add one, write a class and add a line here. */
const PROTECTIONS: { readonly [K in Protection["kind"]]?: new (value: OfKind<K>) => DeviceProtection } = {
  secure_sum: SecureSumProtection,
};

/** The device's side of a wire protection. Throws ProtectionTooWeak for an unsupported kind. */
export function resolve(protection: Protection): DeviceProtection {
  const protectionClass = PROTECTIONS[protection.kind] as (new (value: Protection) => DeviceProtection) | undefined;
  if (!protectionClass) throw new ProtectionTooWeak(`'${protection.kind}' is not supported by this device.`);
  return new protectionClass(protection);
}
