"""What every server of ours stands on: the gateway, `memograd serve`, the scoring server.

`running` runs an application, `host_check` and `body_limit` stand before its routes, `strict_json`
is how routes read their bodies, `tables` opens a server's own tables. Nothing here knows what is
served.
"""
