/* Makes lines for LOAD DATA straight from Debezium's records in JSON.
 *
 * A record is read in one pass. The parts that are not needed, such as the row before an update, are
 * only skipped. Each value that is written is checked as Python checks it (spark_sink/rows), and
 * written as Python writes it (encoders.py). Where something in a record is not what is expected, the
 * work ends before it, and Python goes on with that record: it finds what is the matter. So a refusal
 * here is never wrong, only slow.
 *
 * No memory is allocated, and nothing is kept between two calls. library.py calls it;
 * tests/properties/test_record_lines.py compares the two ways.
 */

#include "values.h"

/* The records of one shape. The numbers in order are columns, as the lines have them. */
struct layout {
  const struct column *columns;
  const u32 *order;
  u32 column_count, order_count;
  struct text ending; /* of each line: the values that all rows have in common */
  struct text source, database, table; /* JSON strings */
  struct text epoch_name, epoch; /* "name": and its JSON string, which is empty for epoch 0 */
};

/* The records that are taken: rows at low < position < high in the binlog file. If the records have
 * Connect's embedded schema, all up to the payload is the prefix. */
struct bounds {
  struct text prefix;
  struct text file; /* a JSON string */
  i64 low, high;
};

/* What was made of the rows. Each array has place for all records. */
struct made {
  u8 *lines; /* a line for each row, with its newline; a deleted row's line is empty */
  u64 lines_size, lines_used;
  u8 *texts; /* of the key: row by row, column by column, each with a newline behind it */
  u64 texts_size, texts_used;
  i64 *integers; /* of the key: row by row, column by column */
  u8 *operations;
  u8 is_full; /* there was no place for the next row */
};

static int read_image(struct cursor *c, const struct layout *layout, struct value *values) {
  for (u32 n = 0; n < layout->column_count; n++)
    if (!takes_text(c, layout->columns[n].name) || !read_value(c, &values[n])) return 0;
  return layout->column_count > 0 && TAKES(c, "}");
}

enum seen { BEFORE = 1, AFTER = 2, SOURCE = 4, OPERATION = 8, EPOCH = 16 };
enum source_seen { NAME = 1, DATABASE = 2, TABLE = 4, FILE_NAME = 8, POSITION = 16 };

static int read_source(struct cursor *c, const struct layout *layout, const struct bounds *bounds,
                       i64 *position) {
  u32 seen = 0, part;
  struct value value;
  if (!TAKES(c, "{")) return 0;
  do {
    if (TAKES(c, "\"name\":")) {
      part = NAME;
      if (!takes_text(c, layout->source)) return 0;
    } else if (TAKES(c, "\"db\":")) {
      part = DATABASE;
      if (!takes_text(c, layout->database)) return 0;
    } else if (TAKES(c, "\"table\":")) {
      part = TABLE;
      if (!takes_text(c, layout->table)) return 0;
    } else if (TAKES(c, "\"file\":")) {
      part = FILE_NAME;
      if (!takes_text(c, bounds->file)) return 0;
    } else if (TAKES(c, "\"pos\":")) {
      part = POSITION;
      if (!read_value(c, &value) || !read_integer(&value, position)) return 0;
    } else {
      part = 0;
      if (!TAKES(c, "\"") || !read_string(c, &value) || value.escaped || !TAKES(c, ":") ||
          !read_value(c, &value))
        return 0;
    }
    if (seen & part) return 0;
    seen |= part;
  } while (TAKES(c, ","));
  return seen == (NAME | DATABASE | TABLE | FILE_NAME | POSITION) && TAKES(c, "}");
}

struct record {
  struct cursor before, after; /* empty where the record has null */
  i64 position;
  u8 operation;
};

static int read_optional_image(struct cursor *c, struct cursor *image) {
  image->at = image->end = c->at;
  if (TAKES(c, "null")) return 1;
  if (peek(c) != '{' || !skip_nested(c)) return 0;
  image->end = c->at;
  return 1;
}

static int read_record(struct cursor c, const struct layout *layout, const struct bounds *bounds,
                       struct value *values, struct record *record) {
  u32 seen = 0, part;
  struct value value;
  record->after.at = record->after.end = record->before.at = record->before.end = c.at;
  if (!TAKES(&c, "{")) return 0;
  do {
    if (TAKES(&c, "\"before\":")) {
      part = BEFORE;
      if (!read_optional_image(&c, &record->before)) return 0;
    } else if (TAKES(&c, "\"after\":")) {
      part = AFTER;
      record->after.at = c.at;
      if (!TAKES(&c, "null")) {
        if (!read_image(&c, layout, values)) return 0;
        record->after.end = c.at;
      }
    } else if (TAKES(&c, "\"source\":")) {
      part = SOURCE;
      if (!read_source(&c, layout, bounds, &record->position)) return 0;
    } else if (TAKES(&c, "\"op\":\"")) {
      part = OPERATION;
      record->operation = peek(&c);
      if (c.at >= c.end) return 0;
      c.at++;
      if (!TAKES(&c, "\"")) return 0;
    } else if (takes_text(&c, layout->epoch_name)) {
      part = EPOCH;
      if (layout->epoch.size ? !takes_text(&c, layout->epoch) : !TAKES(&c, "null")) return 0;
    } else {
      part = 0;
      if (!TAKES(&c, "\"") || !read_string(&c, &value) || value.escaped || !TAKES(&c, ":") ||
          !read_value(&c, &value))
        return 0;
    }
    if (seen & part) return 0;
    seen |= part;
  } while (TAKES(&c, ","));
  if (!TAKES(&c, "}") || c.at != c.end) return 0;
  if (!(seen & SOURCE) || !(seen & OPERATION) || (layout->epoch.size && !(seen & EPOCH))) return 0;
  return bounds->low < record->position && record->position < bounds->high;
}

static int put_key(const struct layout *layout, const struct value *values, struct made *made,
                   i64 **integers) {
  u8 *to = made->texts + made->texts_used, *start;
  for (u32 n = 0; n < layout->column_count; n++) {
    const struct value *value = &values[n];
    if (layout->columns[n].key == INTEGER_KEY) {
      if (!read_integer(value, (*integers)++)) return 0;
    } else if (layout->columns[n].key == UNSIGNED_KEY) {
      if (!read_magnitude(value, (u64 *)(*integers)++) || *value->text.start == '-') return 0;
    } else if (layout->columns[n].key == TEXT_KEY) {
      if (value->token != STRING) return 0;
      if (made->texts_size - (u64)(to - made->texts) < (u64)value->text.size + 1) {
        made->is_full = 1;
        return 0;
      }
      start = to;
      to = put_string(to, value, 0);
      if (to == NULL || memchr(start, '\n', (size_t)(to - start)) != NULL) return 0;
      *to++ = '\n';
    }
  }
  made->texts_used = (u64)(to - made->texts);
  return 1;
}

static u64 most_of_line(const struct layout *layout, const struct value *values) {
  u64 most = layout->ending.size + 2;
  for (u32 n = 0; n < layout->column_count; n++)
    most += 3 * ((u64)values[n].text.size + layout->columns[n].width) + WIDEST;
  return most;
}

/* A row's line; a deleted row's values are checked, and its line is empty. */
static u8 *put_row(const struct layout *layout, const struct value *values, struct made *made,
                   int deleted) {
  u8 *start = made->lines + made->lines_used, *to = start;
  if (made->lines_size - made->lines_used < most_of_line(layout, values)) {
    made->is_full = 1;
    return NULL;
  }
  for (u32 n = 0; n < layout->order_count; n++) {
    u32 number = layout->order[n];
    if (deleted && layout->columns[number].key == NO_KEY) continue;
    if (n && !deleted) *to++ = '\t';
    to = put_value(to, &layout->columns[number], &values[number]);
    if (to == NULL) return NULL;
  }
  to = deleted ? start : put_text(to, layout->ending);
  *to++ = '\n';
  return to;
}

/* The digest of the code that this was compiled from; see sources.py. */
const char *shardmerge_sources(void) { return SOURCES; }

/* Takes records up to the first that Python has to look at, and returns how many.
 *
 * data: all records; sizes: of each. values: place for a row's. A row that was read (operation r)
 * and has another position than the one read before it is left to Python, too. */
u32 shardmerge_take(const struct layout *layout, const struct bounds *bounds, const u8 *data,
                    const u32 *sizes, u32 count, struct value *values, struct made *made) {
  i64 *integers = made->integers, read_at = -1;
  u32 taken = 0;
  made->lines_used = made->texts_used = 0;
  made->is_full = 0;
  for (; taken < count; taken++) {
    struct record record;
    struct cursor cursor = {data, data + sizes[taken]};
    u8 *to;
    if (bounds->prefix.size &&
        (!takes_text(&cursor, bounds->prefix) || cursor.at == cursor.end || *--cursor.end != '}'))
      break;
    if (!read_record(cursor, layout, bounds, values, &record)) break;
    switch (record.operation) {
    case 'r':
      if (read_at != -1 && read_at != record.position) return taken;
      /* fall through */
    case 'c':
    case 'u':
      if (record.after.at == record.after.end) return taken;
      break;
    case 'd':
      if (record.before.at == record.before.end) return taken;
      if (!read_image(&record.before, layout, values) || record.before.at != record.before.end)
        return taken;
      break;
    default:
      return taken;
    }
    to = put_row(layout, values, made, record.operation == 'd');
    if (to == NULL) break;
    if (!put_key(layout, values, made, &integers)) break;
    if (record.operation == 'r') read_at = record.position;
    made->lines_used = (u64)(to - made->lines);
    made->operations[taken] = record.operation;
    data += sizes[taken];
  }
  return taken;
}
