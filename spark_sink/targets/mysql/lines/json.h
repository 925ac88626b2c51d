/* Reads JSON as Debezium and Connect write it: without blanks.
 *
 * A cursor stands in a text and knows its end. Each reader moves it past what it read and returns 1,
 * or returns 0 where the text is something else; the cursor may stand anywhere then. Nothing is read
 * beyond the end.
 */

#ifndef SHARDMERGE_JSON_H
#define SHARDMERGE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

struct text {
  const u8 *start;
  u32 size;
};

enum token { NOTHING, NULL_TOKEN, TRUE_TOKEN, FALSE_TOKEN, WHOLE, FRACTION, STRING, OTHER };

struct value {
  struct text text; /* of a number, or of a string without its quotes; else empty */
  u8 token;
  u8 escaped;
};

struct cursor {
  const u8 *at, *end;
};

static int takes(struct cursor *c, const char *text, size_t size) {
  if ((size_t)(c->end - c->at) < size || memcmp(c->at, text, size) != 0) return 0;
  c->at += size;
  return 1;
}

#define TAKES(cursor, literal) takes(cursor, literal, sizeof(literal) - 1)

static int takes_text(struct cursor *c, struct text text) {
  return takes(c, (const char *)text.start, text.size);
}

static u8 peek(const struct cursor *c) { return c->at < c->end ? *c->at : 0; }

/* The high bit of each byte that is zero; lower bytes than the first such one are exact. */
static u64 zero_bytes(u64 word) {
  return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/* Moves to the next quote, backslash or control character. */
static void to_special(struct cursor *c) {
  while (c->end - c->at >= 8) {
    u64 word;
    memcpy(&word, c->at, 8);
    u64 found = zero_bytes(word ^ 0x2222222222222222u) | zero_bytes(word ^ 0x5c5c5c5c5c5c5c5cu) |
                ((word - 0x2020202020202020u) & ~word & 0x8080808080808080u);
    if (found) break;
    c->at += 8;
  }
  while (c->at < c->end && *c->at != '"' && *c->at != '\\' && *c->at >= 0x20) c->at++;
}

/* A string whose opening quote was taken. */
static int read_string(struct cursor *c, struct value *value) {
  value->token = STRING;
  value->escaped = 0;
  value->text.start = c->at;
  for (;;) {
    to_special(c);
    if (c->at >= c->end) return 0;
    if (*c->at == '"') break;
    if (*c->at != '\\' || c->end - c->at < 2) return 0;
    value->escaped = 1;
    c->at += 2;
  }
  value->text.size = (u32)(c->at - value->text.start);
  c->at++;
  return 1;
}

static int is_digit(u8 byte) { return (u8)(byte - '0') < 10; }

static const u8 *after_digits(const u8 *at, const u8 *end) {
  while (at < end && is_digit(*at)) at++;
  return at;
}

static int read_number(struct cursor *c, struct value *value) {
  const u8 *start = c->at, *at = start, *digits, *end = c->end;
  if (at < end && *at == '-') at++;
  digits = at;
  at = after_digits(at, end);
  if (at == digits || (*digits == '0' && at - digits > 1)) return 0;
  value->token = WHOLE;
  if (at < end && *at == '.') {
    digits = ++at;
    at = after_digits(at, end);
    if (at == digits) return 0;
    value->token = FRACTION;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    digits = at;
    at = after_digits(at, end);
    if (at == digits) return 0;
    value->token = FRACTION;
  }
  value->text.start = start;
  value->text.size = (u32)(at - start);
  value->escaped = 0;
  c->at = at;
  return 1;
}

/* Past an array or an object: to the bracket that closes it. */
static int skip_nested(struct cursor *c) {
  struct value string;
  u32 depth = 0;
  while (c->at < c->end) {
    u8 byte = *c->at++;
    if (byte == '"') {
      if (!read_string(c, &string)) return 0;
    } else if (byte == '{' || byte == '[') {
      depth++;
    } else if (byte == '}' || byte == ']') {
      if (--depth == 0) return 1;
    }
  }
  return 0;
}

static int read_value(struct cursor *c, struct value *value) {
  value->text.size = 0;
  switch (peek(c)) {
  case '"':
    c->at++;
    return read_string(c, value);
  case 'n':
    value->token = NULL_TOKEN;
    return TAKES(c, "null");
  case 't':
    value->token = TRUE_TOKEN;
    return TAKES(c, "true");
  case 'f':
    value->token = FALSE_TOKEN;
    return TAKES(c, "false");
  case '{':
  case '[':
    value->token = OTHER;
    return skip_nested(c);
  default:
    return read_number(c, value);
  }
}

/* An integer of 64 bits: its absolute value. */
static int read_magnitude(const struct value *value, u64 *magnitude) {
  const u8 *at = value->text.start, *end;
  u64 found = 0;
  if (value->token != WHOLE) return 0;
  end = at + value->text.size;
  at += *at == '-';
  if (end - at > 20 || (end - at == 20 && memcmp(at, "18446744073709551615", 20) > 0)) return 0;
  for (; at < end; at++) found = found * 10 + (u64)(*at - '0');
  *magnitude = found;
  return 1;
}

static int read_integer(const struct value *value, i64 *number) {
  u64 magnitude;
  if (!read_magnitude(value, &magnitude) || magnitude > INT64_MAX) return 0;
  *number = *value->text.start == '-' ? -(i64)magnitude : (i64)magnitude;
  return 1;
}

#endif
