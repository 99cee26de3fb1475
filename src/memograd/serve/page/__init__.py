"""The page of `memograd serve`: what is remembered, why it is found, and what training changed.

    browser ──/page/...──► viewing (session, language) ──► a view's function ──► Jinja template
                                      │
                                      └─► PageMemory, the memory as this session's key may see it

Plain HTML that the server writes; htmx replaces parts of it and uPlot draws curves, both kept in
`static/vendor` with their licences. Every sentence that a reader sees stands in `texts.toml`, in
English and Chinese. Invariants: no text of a memory, a run or a request is ever HTML (Jinja escapes
all of it, and the content security policy lets no inline script or style run); every view works as
a link without JavaScript, changes need it.
"""
