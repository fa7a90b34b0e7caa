"""The rules of axe-core, checked on a page that is open in Chromium."""

from __future__ import annotations

from collections.abc import Sequence

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.doubles.long_form import by_length

CHECK = """async ([rules, every]) => {
  const shown =
    /^(class|role|type|open|disabled|hidden|style|aria-(pressed|expanded|hidden|current|disabled|checked))$/;
  const shape = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data.trim() && 'text';
    if (node.nodeType !== Node.ELEMENT_NODE) return '';
    const held = Array.from(node.attributes, ({ name, value }) =>
      shown.test(name) ? `${name}=${value.replace(/\\bhue-\\d+/, 'hue')}` : name);
    const inside = new Set(Array.from(node.childNodes, shape));
    return `${node.tagName}[${held.sort()}](${[...inside].sort()})`;
  };
  const mark = (parent) => {
    const seen = new Set();
    for (const child of parent.children) {
      const found = shape(child);
      if (seen.has(found)) child.toggleAttribute('data-alike', true);
      else mark(child);
      seen.add(found);
    }
  };
  const options = { resultTypes: ['violations'], selectors: false, preload: false };
  if (rules !== null) options.runOnly = { type: 'rule', values: rules };
  if (!every) mark(document.body);
  const found = await axe.run({ include: [['html'], ['.section-mark']], exclude: [['[data-alike]']] }, options);
  for (const one of document.querySelectorAll('[data-alike]')) one.removeAttribute('data-alike');
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""
"""Checks every element, or leaves out those that differ from an earlier sibling only in texts and addresses, and so
have the same styles. The marks of sections, each in a hue of its own, are checked always."""
EVERY_ELEMENT = by_length(False, long=True)


def broken_rules(page: Page, rules: Sequence[str] | None = None) -> list[str]:
    """Return where the page breaks any rule, or one of these: the rule's name and the element's beginning.

    In the short form one of siblings with the same tags, attributes and states stands for all.
    """
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(Axe().axe_script)
    found: list[str] = page.evaluate(CHECK, [None if rules is None else list(rules), EVERY_ELEMENT])
    return found
