"""The symbols of tensor shapes, the same in every module, in end-of-line comments such as `# [b, C, D]`.

| symbol | meaning                                            | here        |
|--------|----------------------------------------------------|-------------|
| b      | batch: readers or training samples                 | any         |
| H      | clicked news, left-padded, newest last             | 50          |
| h      | attention heads                                    | 16          |
| d      | size of one head                                   | 16          |
| D      | size of a news or user vector, h * d               | 256         |
| A      | hidden size of additive attention                  | 128 or 200  |
| C      | interest channels of a reader, at most C_max       | 5           |
| B      | basic interests                                    | 30          |
| K      | negatives of one positive; candidates are 1 + K    | 4           |
| R      | candidates to rank                                 | any         |
| L      | word pieces of a title                             | 30          |
| S      | size of a token state of the language model        | 384         |
| n      | news                                               | any         |

Masks are floating point, 1 for real and 0 for padding.
"""

from __future__ import annotations

CLICKS = 50  # H
HEADS = 16  # h
HEAD_DIM = 16  # d
NEWS_DIM = HEADS * HEAD_DIM  # D
CHANNELS_LIMIT = 5  # C_max
BASIS_SIZE = 30  # B
NEGATIVES = 4  # K
