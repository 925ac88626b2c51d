package io.debezium.antlr;

import org.antlr.v4.runtime.CharStream;
import shardmerge.connect.ShownWords;

/**
 * Has the name of the class through which Debezium's parsers of DDL see a statement, in upper case.
 * {@link shardmerge.connect.Replacements} puts it in the place of that class.
 */
public final class CaseChangingCharStream extends ShownWords {

    public CaseChangingCharStream(CharStream stream, boolean upper) {
        super(stream, upper);
    }
}
