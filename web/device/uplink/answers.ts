// Reading answers: the vectors that come with candidates, and messages of the wire.
import { AnswerMalformed } from "../errors";
import { type Vectors } from "../vectors";
import { type Form, WireError, readMessage } from "../wire/forms";
import type { RecallAnswer } from "../wire/recall";
import { TensorError, dequantise, unpack } from "../wire/tensors";
import type { Bytes } from "../wire/values";

const VECTORS_LIMIT_BYTES = 8 * 1024 * 1024;
/** News vectors are of about length 1; squares and products of numbers this large still fit a float32. */
const SCALE_LIMIT = 1e6;

/** The body of an answer as a message of the wire; throws AnswerMalformed naming the field that breaks it. */
export function parsed<T>(form: Form<T>, body: Bytes, what: string): T {
  try {
    return readMessage(form, body);
  } catch (broken) {
    if (broken instanceof WireError) throw new AnswerMalformed(what, broken.message);
    throw broken;
  }
}

/** [R, D], one row a candidate, in the answer's order. Throws AnswerMalformed. */
export function readVectors(answer: RecallAnswer, dimensions: number): Vectors {
  return readCodes(answer.vectors, answer.candidates.length, dimensions, "recall", VECTORS_LIMIT_BYTES);
}

/** [rows, dimensions] from a blob of `codes` and `scales`. Throws AnswerMalformed. */
export function readCodes(blob: Bytes, rows: number, dimensions: number, what: string, limitBytes: number): Vectors {
  try {
    const { codes, scales } = unpack(
      blob,
      { codes: { dtype: "int8", shape: [rows, dimensions] }, scales: { dtype: "float32", shape: [rows] } },
      limitBytes,
    );
    const lengths = scales.data as Float32Array;
    const largest = lengths.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    if (largest > SCALE_LIMIT) throw new TensorError(`tensor scales: at most ${SCALE_LIMIT}, got ${largest}`);
    return { data: dequantise(codes.data as Int8Array, lengths), rows, width: dimensions };
  } catch (broken) {
    if (broken instanceof TensorError) throw new AnswerMalformed(what, broken.message);
    throw broken;
  }
}
