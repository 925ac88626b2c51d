// Pins the TiDB that `make tidb` builds. See build.sh.
module shardmerge.invalid/tidb

go 1.25.0

require (
	github.com/pingcap/tidb v1.1.0-beta.0.20250925123346-8ea80e6b2b42
	github.com/pingcap/tidb/pkg/parser v0.0.0-20250925154222-93731f04705d
)

// As TiDB's own go.mod has it; Go reads replacements of the main module only.
replace github.com/go-ldap/ldap/v3 => github.com/yangkeao/ldap/v3 v3.4.5-0.20230421065457-369a3bab1117
