"""The texts of a page, in open and closed drawers: prose by sentence, tables by row, figures by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from playwright.sync_api import Page

_COLLECT = """
() => {
  const flat = text => text.replace(/\\s+/g, ' ').trim();
  const tables = {}, figures = {};
  for (const table of document.querySelectorAll('main table')) {
    const rows = [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => flat(cell.textContent)));
    tables[flat(table.closest('[aria-label]').getAttribute('aria-label'))] = rows;
  }
  for (const term of document.querySelectorAll('main dl.figures dt'))
    figures[flat(term.textContent)] = flat(term.nextElementSibling.textContent);
  const blocks = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.nodeType === Node.ELEMENT_NODE && node.tagName !== 'BR') continue;
    if (node.parentElement.closest('script, style, svg, tbody, dl.figures, pre, .hidden, [hidden]')) continue;
    let block = node.parentElement;
    while (getComputedStyle(block).display.startsWith('inline') && !block.matches('a, button, label, option'))
      block = block.parentElement;
    if (block.matches('a, button') && block.parentElement.matches('p')) block = block.parentElement;
    blocks.set(block, (blocks.get(block) || '') + (node.textContent || ' '));
  }
  const titles = [...document.querySelectorAll('header [title]')].map(one => one.getAttribute('title'));
  return {tables, figures, blocks: [...blocks.values(), ...titles].map(flat).filter(Boolean)};
}
"""
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z“(])")


@dataclass(frozen=True)
class PageTexts:
    """sentences: of all prose, labels and captions; tables: rows of cells, by the name of their region; figures: by
    term."""

    sentences: list[str]
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)

    def says(self, words: str) -> bool:
        """Return whether a sentence contains these words."""
        return any(words in sentence for sentence in self.sentences)


def said_on(page: Page) -> PageTexts:
    """Return the texts of the open page in order; a sentence that appears twice is listed twice."""
    found = page.evaluate(_COLLECT)
    sentences = [sentence for block in found["blocks"] for sentence in SENTENCE.split(block)]
    return PageTexts(sentences, found["tables"], found["figures"])
