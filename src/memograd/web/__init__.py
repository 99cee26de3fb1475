"""What every server of ours stands on: the gateway, `memograd serve`, the scoring server.

`running` runs an application. `host_check`, `body_limit` and `headers` stand before its routes.
`strict_json` is how routes read their bodies, `json_text` how deep JSON may be. `tables` opens a
server's own tables, and says how long a database is waited for.
"""
