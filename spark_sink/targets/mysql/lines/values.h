/* Writes values as MySQL's LOAD DATA reads them, as encoders.py does.
 *
 * Each function writes at "to" and returns the place behind, or NULL where Python has to decide. A
 * value needs at most three times the bytes of its JSON, or WIDEST if that is more.
 */

#ifndef SHARDMERGE_VALUES_H
#define SHARDMERGE_VALUES_H

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

/* What a column's values are. The numbers are those of layouts.Kind. */
enum kind {
  UNWRITTEN,
  INTEGER,
  YEAR,
  DECIMAL,
  DOUBLE,
  SINGLE,
  DATE,
  TIME,
  MILLISECONDS,
  MICROSECONDS,
  TIMESTAMP,
  TEXT,
  CHARSET_TEXT, /* U+FFFD stands for a byte that Debezium could not read */
  ELEMENT,      /* of an ENUM; '' is the error value */
  EXACT_JSON,   /* JSON for a server that reads some numbers inexactly */
  BYTES,
  BITS
};

enum key { NO_KEY, INTEGER_KEY, UNSIGNED_KEY, TEXT_KEY };

struct column {
  struct text name; /* as in the record: {"id": for the first one, ,"name": for the others */
  u8 kind;
  u8 key;
  u8 zero_for_null; /* TIMESTAMP NOT NULL: Debezium writes NULL for its zero */
  u32 width;        /* of BINARY(n), else 0 */
};

enum { WIDEST = 32 };

static u8 *put(u8 *to, const void *from, size_t size) {
  memcpy(to, from, size);
  return to + size;
}

static u8 *put_digits(u8 *to, u64 number, int width) {
  for (int n = width - 1; n >= 0; n--, number /= 10) to[n] = (u8)('0' + number % 10);
  return to + width;
}

static u8 *put_text(u8 *to, struct text text) { return put(to, text.start, text.size); }

static int hex_digit(u8 byte) {
  if (is_digit(byte)) return byte - '0';
  byte |= 0x20;
  return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static int read_unit(const u8 *at, const u8 *end, u32 *unit) {
  u32 found = 0;
  if (end - at < 4) return 0;
  for (int n = 0; n < 4; n++) {
    int digit = hex_digit(at[n]);
    if (digit < 0) return 0;
    found = found << 4 | (u32)digit;
  }
  *unit = found;
  return 1;
}

static u8 *put_character(u8 *to, u32 code) {
  if (code < 0x80) {
    *to++ = (u8)code;
  } else if (code < 0x800) {
    *to++ = (u8)(0xC0 | code >> 6);
    *to++ = (u8)(0x80 | (code & 63));
  } else if (code < 0x10000) {
    *to++ = (u8)(0xE0 | code >> 12);
    *to++ = (u8)(0x80 | (code >> 6 & 63));
    *to++ = (u8)(0x80 | (code & 63));
  } else {
    *to++ = (u8)(0xF0 | code >> 18);
    *to++ = (u8)(0x80 | (code >> 12 & 63));
    *to++ = (u8)(0x80 | (code >> 6 & 63));
    *to++ = (u8)(0x80 | (code & 63));
  }
  return to;
}

/* The character behind a backslash; NULL for one that JSON does not have, or half a pair. */
static const u8 *read_escape(const u8 *at, const u8 *end, u32 *code) {
  u32 low;
  switch (*at++) {
  case '"': *code = '"'; return at;
  case '\\': *code = '\\'; return at;
  case '/': *code = '/'; return at;
  case 'b': *code = '\b'; return at;
  case 'f': *code = '\f'; return at;
  case 'n': *code = '\n'; return at;
  case 'r': *code = '\r'; return at;
  case 't': *code = '\t'; return at;
  case 'u': break;
  default: return NULL;
  }
  if (!read_unit(at, end, code)) return NULL;
  at += 4;
  if (*code < 0xD800 || *code > 0xDFFF) return at;
  if (*code > 0xDBFF || end - at < 6 || at[0] != '\\' || at[1] != 'u' ||
      !read_unit(at + 2, end, &low) || low < 0xDC00 || low > 0xDFFF)
    return NULL;
  *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
  return at + 6;
}

/* A string's characters; with the escapes of LOAD DATA for a line. */
static u8 *put_string(u8 *to, const struct value *value, int for_line) {
  const u8 *at = value->text.start, *end = at + value->text.size;
  u32 code;
  if (!value->escaped) return put_text(to, value->text);
  while (at < end) {
    if (*at != '\\') {
      *to++ = *at++;
      continue;
    }
    at = read_escape(at + 1, end, &code);
    if (at == NULL) return NULL;
    if (for_line && (code == '\\' || code == '\t' || code == '\n' || code == 0)) {
      *to++ = '\\';
      code = code == '\t' ? 't' : code == '\n' ? 'n' : code == 0 ? '0' : code;
    }
    to = put_character(to, code);
  }
  return to;
}

static int has_replacement_character(const u8 *at, const u8 *end) {
  while (end - at >= 3) {
    const u8 *found = memchr(at, 0xEF, (size_t)(end - at - 2));
    if (found == NULL) return 0;
    if (found[1] == 0xBF && found[2] == 0xBD) return 1;
    at = found + 1;
  }
  return 0;
}

/* A character of a text that was written for LOAD DATA. */
static u8 next_of_line(const u8 **at) {
  u8 byte = *(*at)++;
  if (byte != '\\') return byte;
  return *(*at)++ == '\\' ? '\\' : ' '; /* a tab, a newline, or 0 */
}

/* Whether JSON, as it was written for LOAD DATA, has a number that json_numbers.py looks at: one with
 * an exponent, or a fraction of more than 16 characters. */
static int may_change(const u8 *at, const u8 *end) {
  int in_string = 0;
  while (at < end) {
    const u8 *token = at;
    int points = 0;
    u8 byte = next_of_line(&at);
    if (in_string) {
      if (byte == '\\' && at < end) next_of_line(&at);
      in_string = byte != '"';
    } else if (byte == '"') {
      in_string = 1;
    } else if (is_digit(byte) || byte == '-') {
      for (; at < end && (is_digit(*at) || *at == '.'); at++) points += *at == '.';
      if (at < end && (*at == 'e' || *at == 'E')) return 1;
      if (points && at - token > 16) return 1;
    }
  }
  return 0;
}

static int is_decimal(struct text text) {
  const u8 *at = text.start, *end = at + text.size, *digits;
  if (at < end && *at == '-') at++;
  digits = at;
  at = after_digits(at, end);
  if (at == digits) return 0;
  if (at == end) return 1;
  if (*at != '.') return 0;
  digits = ++at;
  at = after_digits(at, end);
  return at > digits && at == end;
}

/* Python has no such integer. */
static int is_minus_zero(struct text text) {
  return text.size == 2 && memcmp(text.start, "-0", 2) == 0;
}

/* An integer of at most 64 bits, or a little longer, that is written as Python would write it. */
static int is_integer(const struct value *value) {
  return value->token == WHOLE && value->text.size <= 20 && !is_minus_zero(value->text);
}

/* Whether a number is certainly below ten to the power of 300. */
static int is_double(struct text text) {
  const u8 *at = text.start, *end = at + text.size, *digits = at + (*at == '-');
  i64 power;
  at = after_digits(digits, end);
  power = at - digits;
  while (at < end && *at != 'e' && *at != 'E') at++;
  if (at < end) {
    i64 exponent = 0;
    at++;
    if (*at == '+' || *at == '-') at++;
    if (end - at > 3) return 0;
    for (; at < end; at++) exponent = exponent * 10 + (*at - '0');
    power += exponent;
  }
  return power <= 300;
}

/* The exact value of the nearest single-precision number: the target's column may be a DOUBLE.
 * A comma or a bracket follows the number in the record, so strtod ends there. */
static u8 *put_single(u8 *to, struct text text) {
  char *end;
  double number = strtod((const char *)text.start, &end);
  u8 *start = to;
  if ((const u8 *)end != text.start + text.size) return NULL; /* another decimal point: a locale */
  if (!(number >= -FLT_MAX && number <= FLT_MAX)) return NULL;
  to += snprintf((char *)to, WIDEST, "%.17g", (double)(float)number);
  return memchr(start, ',', (size_t)(to - start)) ? NULL : to;
}

static const i64 FIRST_DAY = -719528, LAST_DAY = 2932896, ZERO_DAY = -100000000;

/* Source: H. Hinnant, "chrono-compatible low-level date algorithms" (civil_from_days). */
static u8 *put_date(u8 *to, i64 days) {
  i64 era, day_of_era, year_of_era, day_of_year, month, year;
  if (days == ZERO_DAY) return put(to, "0000-00-00", 10);
  if (days < FIRST_DAY || days > LAST_DAY) return NULL;
  days += 719468;
  era = (days >= 0 ? days : days - 146096) / 146097;
  day_of_era = days - era * 146097;
  year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  month = (5 * day_of_year + 2) / 153;
  year = year_of_era + era * 400 + (month >= 10);
  to = put_digits(to, (u64)year, 4);
  *to++ = '-';
  to = put_digits(to, (u64)(month < 10 ? month + 3 : month - 9), 2);
  *to++ = '-';
  return put_digits(to, (u64)(day_of_year - (153 * month + 2) / 5 + 1), 2);
}

static u8 *put_clock(u8 *to, i64 seconds) {
  to = put_digits(to, (u64)(seconds / 60 % 60), 2);
  *to++ = ':';
  return put_digits(to, (u64)(seconds % 60), 2);
}

/* digits: of the unit's fraction, 3 for milliseconds and 6 for microseconds. */
static u8 *put_moment(u8 *to, i64 number, i64 unit, int digits) {
  i64 day_length = 86400 * unit, days = number / day_length, rest = number % day_length;
  if (rest < 0) {
    rest += day_length;
    days--;
  }
  to = put_date(to, days);
  if (to == NULL) return NULL;
  *to++ = ' ';
  to = put_digits(to, (u64)(rest / unit / 3600), 2);
  *to++ = ':';
  to = put_clock(to, rest / unit);
  if (rest % unit == 0) return to;
  *to++ = '.';
  return put_digits(to, (u64)(rest % unit), digits);
}

static u8 *put_time(u8 *to, i64 number) {
  i64 seconds, hours;
  if (number < 0) *to++ = '-';
  number = number < 0 ? -number : number;
  seconds = number / 1000000;
  hours = seconds / 3600;
  if (hours > 9999) return NULL;
  to = put_digits(to, (u64)hours, hours > 999 ? 4 : hours > 99 ? 3 : 2);
  *to++ = ':';
  to = put_clock(to, seconds);
  if (number % 1000000 == 0) return to;
  *to++ = '.';
  return put_digits(to, (u64)(number % 1000000), 6);
}

/* "2026-03-01T10:11:12.123Z"; 1970-01-01T00:00:00Z is what Debezium writes for zero. */
static u8 *put_timestamp(u8 *to, struct text text) {
  static const char shape[] = "0000-00-00T00:00:00";
  const u8 *at = text.start, *end = at + text.size;
  size_t size = sizeof(shape) - 1, fraction;
  if (text.size < size + 1) return NULL;
  for (size_t n = 0; n < size; n++)
    if (shape[n] == '0' ? !is_digit(at[n]) : at[n] != (u8)shape[n]) return NULL;
  at += size;
  if (*at == '.') {
    at = after_digits(at + 1, end);
    fraction = (size_t)(at - text.start) - size - 1;
    if (fraction < 1 || fraction > 6) return NULL;
    size += 1 + fraction;
  }
  if (!(end - at == 1 && *at == 'Z') && !(end - at == 6 && memcmp(at, "+00:00", 6) == 0))
    return NULL;
  if (size == 19 && memcmp(text.start, "1970-01-01T00:00:00", 19) == 0)
    return put(to, "0000-00-00 00:00:00", 19);
  put(to, text.start, size);
  to[10] = ' ';
  return to + size;
}

static int base64_digit(u8 byte) {
  if (byte >= 'A' && byte <= 'Z') return byte - 'A';
  if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
  if (is_digit(byte)) return byte - '0' + 52;
  return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

/* Decodes in place of "to"; the last digit's unused bits have to be 0, as encoders write them. */
static u8 *put_base64(u8 *to, struct text text) {
  const u8 *at = text.start, *end = at + text.size;
  if (text.size % 4) return NULL;
  for (; at < end; at += 4) {
    int last = at + 4 == end;
    int pads = last ? (at[3] == '=') + (at[3] == '=' && at[2] == '=') : 0;
    u32 bits = 0;
    for (int n = 0; n < 4; n++) {
      int digit = n >= 4 - pads ? 0 : base64_digit(at[n]);
      if (digit < 0) return NULL;
      bits = bits << 6 | (u32)digit;
    }
    if (pads && bits & (pads == 1 ? 0xFF : 0xFFFF)) return NULL;
    *to++ = (u8)(bits >> 16);
    if (pads < 2) *to++ = (u8)(bits >> 8);
    if (pads < 1) *to++ = (u8)bits;
  }
  return to;
}

static u8 *put_hex(u8 *to, struct text text, u32 width) {
  static const char digits[] = "0123456789abcdef";
  /* The bytes stand behind the place of their digits: twice as many digits as bytes. */
  size_t most = text.size / 4 * 3;
  u8 *bytes = to + 2 * (most > width ? most : width), *end = put_base64(bytes, text);
  if (end == NULL) return NULL;
  while ((size_t)(end - bytes) < width) *end++ = 0;
  for (; bytes < end; bytes++) {
    *to++ = (u8)digits[*bytes >> 4];
    *to++ = (u8)digits[*bytes & 15];
  }
  return to;
}

static u8 *put_unsigned(u8 *to, u64 number) {
  int width = 1;
  for (u64 rest = number; rest >= 10; rest /= 10) width++;
  return put_digits(to, number, width);
}

static u8 *put_bits(u8 *to, struct text text) {
  u8 bytes[12], *end;
  u64 number = 0;
  if (text.size > 12) return NULL;
  end = put_base64(bytes, text);
  if (end == NULL || end - bytes > 8) return NULL;
  while (end > bytes) number = number << 8 | *--end;
  return put_unsigned(to, number);
}

static u8 *put_value(u8 *to, const struct column *column, const struct value *value) {
  u8 *start = to;
  u8 token = value->token;
  i64 number = 0;
  if (token == NULL_TOKEN)
    return column->zero_for_null ? put(to, "0000-00-00 00:00:00", 19) : put(to, "\\N", 2);
  switch (column->kind) {
  case INTEGER:
    if (token == TRUE_TOKEN || token == FALSE_TOKEN) {
      *to = token == TRUE_TOKEN ? '1' : '0';
      return to + 1;
    }
    return is_integer(value) ? put_text(to, value->text) : NULL;
  case DECIMAL:
    if (token == STRING ? value->escaped || !is_decimal(value->text) : !is_integer(value))
      return NULL;
    return put_text(to, value->text);
  case DOUBLE:
  case SINGLE:
    if (token == WHOLE ? is_minus_zero(value->text) : token != FRACTION) return NULL;
    if (!is_double(value->text)) return NULL;
    return column->kind == SINGLE ? put_single(to, value->text) : put_text(to, value->text);
  case YEAR:
    if (!read_integer(value, &number) || number < 0 || number > 9999) return NULL;
    return put_digits(to, number == 1900 ? 0 : (u64)number, 4);
  case DATE:
    return read_integer(value, &number) ? put_date(to, number) : NULL;
  case MILLISECONDS:
    return read_integer(value, &number) ? put_moment(to, number, 1000, 3) : NULL;
  case MICROSECONDS:
    return read_integer(value, &number) ? put_moment(to, number, 1000000, 6) : NULL;
  case TIME:
    return read_integer(value, &number) ? put_time(to, number) : NULL;
  case BITS:
    if (token == TRUE_TOKEN || token == FALSE_TOKEN)
      return put_unsigned(to, token == TRUE_TOKEN);
    return token == STRING && !value->escaped ? put_bits(to, value->text) : NULL;
  default:
    break;
  }
  if (token != STRING) return NULL;
  switch (column->kind) {
  case TIMESTAMP:
    return value->escaped ? NULL : put_timestamp(to, value->text);
  case BYTES:
    return value->escaped ? NULL : put_hex(to, value->text, column->width);
  case ELEMENT:
    if (value->text.size == 0) return put(to, "0", 1);
    return put_string(to, value, 1);
  case TEXT:
    return put_string(to, value, 1);
  case CHARSET_TEXT:
    to = put_string(to, value, 1);
    return to == NULL || has_replacement_character(start, to) ? NULL : to;
  case EXACT_JSON:
    to = put_string(to, value, 1);
    return to == NULL || may_change(start, to) ? NULL : to;
  default:
    return NULL;
  }
}

#endif
