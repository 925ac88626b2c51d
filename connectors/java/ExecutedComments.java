package shardmerge.connect;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.antlr.v4.runtime.CharStream;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.misc.Interval;

/**
 * What statements say of character sets in comments that the server executes, such as {@code
 * /*!40100 DEFAULT CHARACTER SET latin1 *}{@code /}. Debezium's grammars leave these comments out.
 *
 * <p>Source: MySQL 8.0 manual, "Comments"; MariaDB's has {@code /*M!}, too.
 */
final class ExecutedComments {

    /** Which the server executes, whatever its version is. */
    private static final Pattern EXECUTED = Pattern.compile("/\\*M?!(?:[345]\\d{4})?(?!\\d)(.*?)\\*/", Pattern.DOTALL);

    private static final Pattern COMMENTS = Pattern.compile("(?:\\s++|/\\*.*?\\*/)*+", Pattern.DOTALL);
    /** A text that cannot be a name of a character set or a collation. */
    private static final Pattern OTHER_TEXT =
            Pattern.compile("'(?!\\w+')(?:''|\\\\.|[^'\\\\])*+'|\"(?!\\w+\")(?:\"\"|\\\\.|[^\"\\\\])*+\"", Pattern.DOTALL);

    private static final Pattern IF_NOT_EXISTS = words("\\bIF\\s+NOT\\s+EXISTS\\b");
    private static final Pattern CHARSET = words("\\b(?:CHARACTER\\s+SET|CHARSET|CHAR\\s+SET)\\b[\\s=]*['\"`]?(\\w+)");
    private static final Pattern COLLATION = words("\\bCOLLATE\\b[\\s=]*['\"`]?(\\w+)");

    private ExecutedComments() {}

    /** Whether a statement has IF NOT EXISTS in such a comment. */
    static boolean sayIfNotExists(ParserRuleContext rule) {
        return IF_NOT_EXISTS.matcher(executed(text(rule, rule.start.getStartIndex()))).find();
    }

    /** The character set that such comments name behind a place; null when they name none. */
    static String behind(ParserRuleContext rule, int from) {
        return named(executed(text(rule, from)));
    }

    /** The same for comments in a column's definition, and right behind it. */
    static String ofColumn(ParserRuleContext rule) {
        String text = text(rule, rule.start.getStartIndex());
        int end = text.offsetByCodePoints(0, rule.stop.getStopIndex() + 1 - rule.start.getStartIndex());
        Matcher next = COMMENTS.matcher(text).region(end, text.length());
        return named(executed(text.substring(0, next.lookingAt() ? next.end() : end)));
    }

    /** Lets a statement end behind a comment that names its default, so that it is handed on. */
    static void takeIn(ParserRuleContext rule) {
        if (behind(rule, rule.stop.getStopIndex()) == null) {
            return;
        }
        String text = text(rule, 0);
        CommonToken end = new CommonToken(rule.stop);
        for (Matcher comment = EXECUTED.matcher(text); comment.find(); ) {
            end.setStopIndex(Math.max(end.getStopIndex(), text.codePointCount(0, comment.end()) - 1));
        }
        rule.stop = end;
    }

    private static String text(ParserRuleContext rule, int from) {
        CharStream all = rule.start.getInputStream();
        return all.getText(Interval.of(from, all.size() - 1));
    }

    private static String executed(String text) {
        StringBuilder found = new StringBuilder();
        for (Matcher comment = EXECUTED.matcher(text); comment.find(); ) {
            found.append(comment.group(1)).append(' ');
        }
        return found.toString();
    }

    private static String named(String comments) {
        String text = OTHER_TEXT.matcher(comments).replaceAll(" ");
        Matcher charset = CHARSET.matcher(text);
        Matcher collation = COLLATION.matcher(text);
        return charset.find()
                ? charset.group(1)
                : collation.find() ? TrueCharsets.ofCollation(collation.group(1)) : null;
    }

    private static Pattern words(String expression) {
        return Pattern.compile(expression, Pattern.CASE_INSENSITIVE);
    }
}
