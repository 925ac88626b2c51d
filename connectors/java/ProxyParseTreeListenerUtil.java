package io.debezium.antlr;

import shardmerge.connect.TrueCharsets;

/**
 * Has the name of the class through which Debezium's parsers of DDL tell their listeners what was
 * read. {@link shardmerge.connect.Replacements} puts it in the place of that class.
 */
public final class ProxyParseTreeListenerUtil extends TrueCharsets {}
