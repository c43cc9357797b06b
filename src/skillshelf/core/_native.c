/* The loops over thousands of files that `core/files.py` and `lint/security.py` run here where this extension was built.

   Those modules are the reference: they have each of them in Python too, and whatever is not the plain case comes back
   unanswered, so that no error is described here. The stable ABI of Python 3.11; Linux only. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `files.py` uses the extension only if it has this number: one that was built from other sources may lie about. */
#define INTERFACE 3

#define NUMBERS 5        /* of a stamp: device, inode, size, modification and change time */
#define FIRST_READ 4096  /* as in core/limits.py, which is checked when the module is used */
#define NAME_BYTES 255   /* NAME_MAX of Linux */
#define MOST_CHILDREN 64 /* in one call: 256 KiB of heads */

/* Unsigned, since the sum may overflow for a time after 2262; the same 64 bits come out as from Python's integers. */
static uint64_t nanoseconds(struct timespec time) {
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static Py_ssize_t count_names(const char *names, Py_ssize_t size) {
  Py_ssize_t count = 1;
  for (const char *at = names, *end = names + size; (at = memchr(at, 0, (size_t)(end - at))); at++) count++;
  return count;
}

/* Stamps ------------------------------------------------------------------------------------------------------- */

/* Write the stamps of `count` paths, each ending with NUL; return 0 if an entry is missing. Needs no interpreter. */
static int write_stamps(int folder, const char *path, Py_ssize_t count, char *out) {
  for (; count > 0; count--, path += strlen(path) + 1, out += NUMBERS * sizeof(uint64_t)) {
    struct stat status;
    if (fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    uint64_t numbers[NUMBERS] = {(uint64_t)status.st_dev, (uint64_t)status.st_ino, (uint64_t)status.st_size,
                                 nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    memcpy(out, numbers, sizeof numbers);
  }
  return 1;
}

static PyObject *packed_stamps(PyObject *module, PyObject *arguments) {
  int folder, complete;
  const char *paths;
  Py_ssize_t size;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "iy#", &folder, &paths, &size)) return NULL;
  Py_ssize_t count = count_names(paths, size);
  PyObject *packed = PyBytes_FromStringAndSize(NULL, count * NUMBERS * (Py_ssize_t)sizeof(uint64_t));
  if (!packed) return NULL;
  /* Nobody else has `packed` yet, and `arguments` keeps the paths, which end with a NUL of their own. */
  char *out = PyBytes_AsString(packed);
  Py_BEGIN_ALLOW_THREADS
  complete = write_stamps(folder, paths, count, out);
  Py_END_ALLOW_THREADS
  if (complete) return packed;
  Py_DECREF(packed);
  return PyBytes_FromStringAndSize(NULL, 0);
}

/* Words -------------------------------------------------------------------------------------------------------- */

/* Whether words may begin with one byte, with two bytes, or with four that have a hash; only those are compared. */
struct filter {
  unsigned char one[256], two[8192], four[8192]; /* of the last two a bit for each */
};

/* A word as it is compared first: the bytes it begins with, up to eight, and which of these it has. */
struct entry {
  uint64_t head, mask;
  int32_t word, is_last; /* is_last: no other word begins like this one */
};

/* A table finds words by their first bytes: those of up to three bytes by two, longer ones by a hash of four. */
struct table {
  uint16_t one[256], two[65536], four[65536]; /* the first entry of each, from 1 */
  struct filter filter;
};

/* What is seen in one text: places of words in order of the text, then by word; and which words and tokens occur. */
struct sightings {
  int32_t *words, *places, *sorted, *starts; /* `sorted` are the places by word; those of a word begin at its start */
  size_t count, room;
  unsigned char *flags, *is_sought;
  int32_t *known, *tries;
  int32_t *stamps, stamp; /* which words are in the part with this number */
  int32_t near_at, near_stamp;
  int32_t *firsts, *lasts; /* where they are in the window */
  struct filter filter;   /* for the words that are sought in this text */
};

struct numbers {
  int32_t *values;
  size_t count, room;
};

/* The words and the plan that `lint/security_words.py` makes.

   Of the words up to `placed` every place is kept, of those up to `marks` only that they occur; those up to `tokens`
   are between characters that are no letters or digits; those up to `inside` are looked for in windows, and the others
   nearby. The plan is a row of numbers. First these four. Marks: how many, then for each how many words or tokens, and
   those. Sought words: how many, then for each the length of the record, the word, the number of its tokens and the
   tokens, the number of signs and the signs. Signs: how many, where each record begins, then for each how many lines
   follow, the groups of words of which one must be near, and alternatives, one of which must be in the window: how
   many, and each with its length and its groups. Groups are their number, then for each its length and its words. */
struct words {
  int32_t count, placed, marks, tokens, inside, signs, first_sign;
  unsigned char *text, *folded; /* of the words; and a part of a text as those in windows are looked for */
  size_t folded_room;
  int32_t *offsets, *lengths, *plan;
  uint16_t *next; /* the next word with the same beginning, from 1: of tokens, and of others while tables are made */
  struct entry *entries;
  uint32_t entered;
  struct table everywhere, windows, nearby;
  uint16_t by_token[65536];
  unsigned char is_token[8192]; /* a bit for each of these */
  unsigned char is_letter[256]; /* or digit: what tokens are made of */
  struct sightings seen; /* what is seen in a text; kept, since there are thousands of texts */
  struct numbers out;
  PyObject *last_text; /* which `possible_signs` was asked about, if `seen` is still about it */
};

#define BEFORE 240 /* as in lint/security_words.py, which is checked when they are used */
#define AFTER 560
#define MOST_SIGHTINGS (1 << 20)
#define MOST_TRIES 200

static uint32_t four_bytes(const void *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

static uint32_t two_bytes(const void *at) {
  uint16_t value;
  memcpy(&value, at, 2);
  return value;
}

/* Return the next eight bytes, with zeros after the end of the text. */
static uint64_t eight_bytes(const unsigned char *at, int32_t left) {
  uint64_t value = 0;
  if (left >= 8) memcpy(&value, at, 8);
  else memcpy(&value, at, (size_t)left);
  return value;
}

static uint32_t hash_of(const void *at) { return (four_bytes(at) * 2654435761u) >> 16; }

static uint32_t token_hash(const unsigned char *at, int32_t length) {
  uint32_t value = (uint32_t)length;
  if (length >= 4) value += four_bytes(at) ^ four_bytes(at + length - 4) * 31;
  else
    for (int32_t i = 0; i < length; i++) value = value << 8 | at[i];
  return (value * 2654435761u) >> 16;
}

static int is_alnum(int byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9'); }

static void open_filter(struct filter *filter, const unsigned char *word, int32_t length) {
  if (length == 1) {
    filter->one[word[0]] = 1;
    return;
  }
  uint32_t key = length < 4 ? two_bytes(word) : hash_of(word);
  unsigned char *bits = length < 4 ? filter->two : filter->four;
  bits[key >> 3] |= (unsigned char)(1u << (key & 7));
}

static void free_words(PyObject *capsule) {
  struct words *words = PyCapsule_GetPointer(capsule, "skillshelf.words");
  if (!words) return;
  Py_XDECREF(words->last_text);
  void *kept[] = {words->seen.words,     words->seen.places, words->seen.sorted, words->seen.starts, words->seen.flags,
                  words->seen.is_sought, words->seen.known,  words->seen.tries,  words->seen.stamps, words->seen.firsts,
                  words->seen.lasts,     words->out.values};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) free(kept[i]);
  free(words->text);
  free(words->folded);
  free(words->offsets);
  free(words->lengths);
  free(words->plan);
  free(words->next);
  free(words->entries);
  free(words);
}

static const unsigned char FOLDED[256] = {['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
                                          [' '] = 1,  ['\\'] = 1, ['`'] = 1,  ['^'] = 1,  ['>'] = 1, [0xc2] = 1, [0xa0] = 1};

/* Write a text with one blank instead of blanks, ends of lines and what may stand there; return its length.

   What a pattern finds in a text whose lines were joined has the folded words of the pattern in the folded text. */
static int32_t fold(const unsigned char *text, int32_t size, unsigned char *out) {
  int32_t length = 0, was_blank = 0;
  for (int32_t i = 0; i < size; i++) {
    int32_t is_blank = FOLDED[text[i]];
    out[length] = is_blank ? ' ' : text[i];
    length += !(is_blank & was_blank);
    was_blank = is_blank;
  }
  return length;
}

static void enter_word(struct words *words, int32_t index) {
  const unsigned char *word = words->text + words->offsets[index];
  int32_t length = words->lengths[index];
  uint16_t *head;
  if (index >= words->marks && index < words->tokens) {
    uint32_t hash = token_hash(word, length);
    words->is_token[hash >> 3] |= (unsigned char)(1u << (hash & 7));
    head = &words->by_token[hash];
  } else {
    struct table *table = &words->everywhere;
    if (index >= words->marks) table = index < words->inside ? &words->windows : &words->nearby;
    if (length == 1) head = &table->one[word[0]];
    else if (length < 4) head = &table->two[two_bytes(word)];
    else head = &table->four[hash_of(word)];
    open_filter(&table->filter, word, length);
  }
  words->next[index] = *head;
  *head = (uint16_t)(index + 1);
}

/* Put the words of a beginning side by side, so that all are compared without a jump; return the first, from 1. */
static uint16_t lay_out(struct words *words, uint32_t index) {
  uint16_t first = (uint16_t)(words->entered + 1);
  for (; index; index = words->next[index - 1]) {
    struct entry *entry = &words->entries[words->entered++];
    int32_t word = (int32_t)index - 1, length = words->lengths[word];
    const unsigned char *text = words->text + words->offsets[word];
    if (length > 8) length = 8;
    entry->head = eight_bytes(text, length);
    memset(&entry->mask, 0xff, (size_t)length);
    entry->word = word;
    entry->is_last = words->next[index - 1] == 0;
  }
  return first;
}

static void lay_out_table(struct words *words, struct table *table) {
  for (int i = 0; i < 256; i++)
    if (table->one[i]) table->one[i] = lay_out(words, table->one[i]);
  for (int i = 0; i < 65536; i++) {
    if (table->two[i]) table->two[i] = lay_out(words, table->two[i]);
    if (table->four[i]) table->four[i] = lay_out(words, table->four[i]);
  }
}

/* Make room for what is seen in a text; return 0 without memory. */
static int make_room(struct words *words) {
  struct sightings *seen = &words->seen;
  seen->starts = calloc((size_t)words->placed + 2, 4);
  seen->flags = calloc((size_t)words->tokens + 1, 1);
  seen->is_sought = calloc((size_t)words->marks + 1, 1);
  seen->known = calloc((size_t)words->tokens + 1, 4);
  seen->tries = calloc((size_t)words->signs + 1, 4);
  seen->stamps = calloc((size_t)words->count + 1, 4);
  seen->firsts = calloc((size_t)words->inside + 1, 4);
  seen->lasts = calloc((size_t)words->inside + 1, 4);
  return seen->starts && seen->flags && seen->is_sought && seen->known && seen->tries && seen->stamps && seen->firsts &&
         seen->lasts;
}

/* Forget what was seen in the text before. */
static void forget(struct words *words) {
  struct sightings *seen = &words->seen;
  memset(seen->starts, 0, ((size_t)words->placed + 2) * 4);
  memset(seen->flags, 0, (size_t)words->tokens);
  memset(seen->is_sought, 0, (size_t)words->marks);
  memset(seen->tries, 0, (size_t)words->signs * 4);
  memset(&seen->filter, 0, sizeof seen->filter);
  seen->count = words->out.count = 0;
  seen->near_at = 0;
  if (seen->stamp > INT32_MAX / 2) {
    memset(seen->stamps, 0, (size_t)words->count * 4);
    seen->stamp = 0;
  }
  Py_CLEAR(words->last_text);
}

/* compile_words(text, lengths, plan): `lengths` and `plan` are 32-bit numbers. */
static PyObject *compile_words(PyObject *module, PyObject *arguments) {
  PyObject *text;
  const char *lengths, *plan;
  Py_ssize_t lengths_size, plan_size;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "Sy#y#", &text, &lengths, &lengths_size, &plan, &plan_size)) return NULL;
  if (lengths_size / 4 >= UINT16_MAX || plan_size < 7 * 4) {
    PyErr_SetString(PyExc_ValueError, "there are too many words, or there is no plan");
    return NULL;
  }
  struct words *words = calloc(1, sizeof *words);
  if (!words) return PyErr_NoMemory();
  PyObject *capsule = PyCapsule_New(words, "skillshelf.words", free_words);
  if (!capsule) {
    free(words);
    return NULL;
  }
  size_t count = (size_t)lengths_size / 4;
  words->count = (int32_t)count;
  words->offsets = malloc(count * 4 + 4);
  words->lengths = malloc(count * 4 + 4);
  words->next = calloc(count + 1, sizeof *words->next);
  words->entries = calloc(count + 1, sizeof *words->entries);
  words->plan = malloc((size_t)plan_size + 4);
  words->text = malloc((size_t)PyBytes_Size(text) + 1);
  if (!words->text || !words->offsets || !words->lengths || !words->next || !words->entries || !words->plan) {
    Py_DECREF(capsule);
    return PyErr_NoMemory();
  }
  memcpy(words->text, PyBytes_AsString(text), (size_t)PyBytes_Size(text));
  memcpy(words->lengths, lengths, count * 4);
  memcpy(words->plan, plan, (size_t)plan_size);
  words->placed = words->plan[0];
  words->marks = words->plan[1];
  words->tokens = words->plan[2];
  words->inside = words->plan[3];
  int64_t offset = 0;
  for (size_t i = 0; i < count; i++) {
    words->offsets[i] = (int32_t)offset;
    offset += words->lengths[i];
    if (words->lengths[i] < 1 || offset > PyBytes_Size(text)) {
      Py_DECREF(capsule);
      PyErr_SetString(PyExc_ValueError, "the lengths do not fit the text");
      return NULL;
    }
    unsigned char *word = words->text + words->offsets[i];
    if ((int32_t)i >= words->tokens && (int32_t)i < words->inside) words->lengths[i] = fold(word, words->lengths[i], word);
    enter_word(words, (int32_t)i);
  }
  for (int byte = 0; byte < 256; byte++) words->is_letter[byte] = (unsigned char)is_alnum(byte);
  lay_out_table(words, &words->everywhere);
  lay_out_table(words, &words->windows);
  lay_out_table(words, &words->nearby);
  const int32_t *number = words->plan + 4;
  for (int32_t left = *number++; left > 0; left--) number += *number + 1; /* marks */
  for (int32_t left = *number++; left > 0; left--) number += *number + 1; /* sought words */
  words->signs = *number++;
  words->first_sign = (int32_t)(number - words->plan);
  if (!make_room(words)) {
    Py_DECREF(capsule);
    return PyErr_NoMemory();
  }
  return capsule;
}

static int add_sighting(struct sightings *seen, int32_t word, int32_t at) {
  if (seen->count == seen->room) {
    size_t room = seen->room ? seen->room * 2 : 4096;
    int32_t *more = realloc(seen->words, room * 4);
    if (!more) return 0;
    seen->words = more;
    more = realloc(seen->places, room * 4);
    if (!more) return 0;
    seen->places = more;
    more = realloc(seen->sorted, room * 4);
    if (!more) return 0;
    seen->sorted = more;
    seen->room = room;
  }
  seen->words[seen->count] = word;
  seen->places[seen->count++] = at;
  return seen->count < MOST_SIGHTINGS;
}

/* Note which tokens a text has. */
static void find_tokens(const struct words *words, const unsigned char *text, int32_t size, struct sightings *seen) {
  for (int32_t at = 0, start; at < size; at++) {
    if (!words->is_letter[text[at]]) continue;
    for (start = at; at < size && words->is_letter[text[at]]; at++) continue;
    int32_t length = at - start;
    uint32_t hash = token_hash(text + start, length);
    if (!(words->is_token[hash >> 3] >> (hash & 7) & 1)) continue;
    for (uint32_t index = words->by_token[hash]; index; index = words->next[index - 1]) {
      const unsigned char *token = words->text + words->offsets[index - 1];
      if (length == words->lengths[index - 1] && memcmp(text + start, token, (size_t)length) == 0)
        seen->flags[index - 1] = 1;
    }
  }
}

/* Choose the words that are sought in this text: marks, and words all tokens of which it has. */
static void choose_words(const struct words *words, const int32_t *record, int32_t count, struct sightings *seen) {
  for (int32_t word = words->placed; word < words->marks; word++) {
    seen->is_sought[word] = 1;
    open_filter(&seen->filter, words->text + words->offsets[word], words->lengths[word]);
  }
  for (; count > 0; count--, record += *record + 1) {
    int32_t word = record[1], tokens = record[2], has = 1;
    for (int32_t i = 0; i < tokens && has; i++) has = seen->flags[record[3 + i]];
    if (!has) continue;
    seen->is_sought[word] = 1;
    open_filter(&seen->filter, words->text + words->offsets[word], words->lengths[word]);
  }
}

/* Note that a word, the first bytes of which are at a place, is there if the others are; return 0 if that are too many places. */
static int note_word(const struct words *words, int32_t word, const unsigned char *text, int32_t at, int32_t size,
                     struct sightings *seen) {
  int32_t length = words->lengths[word];
  if (word < words->marks && !seen->is_sought[word]) return 1;
  if (length > size - at) return 1;
  if (length > 8 && memcmp(text + at + 8, words->text + words->offsets[word] + 8, (size_t)length - 8) != 0) return 1;
  if (word < words->placed) return add_sighting(seen, word, at);
  if (word < words->marks) {
    seen->flags[word] = 1;
    return 1;
  }
  if (word < words->inside) {
    if (seen->stamps[word] != seen->stamp) seen->firsts[word] = at;
    seen->lasts[word] = at;
  }
  seen->stamps[word] = seen->stamp;
  return 1;
}

/* Look at the words that may begin at a place with these bytes; return 0 if there are too many places. */
static int look_at(const struct words *words, uint32_t index, uint64_t head, const unsigned char *text, int32_t at,
                   int32_t size, struct sightings *seen) {
  const struct entry *entry = words->entries + index - 1;
  for (;; entry++) {
    if ((head & entry->mask) == entry->head && !note_word(words, entry->word, text, at, size, seen)) return 0;
    if (entry->is_last) return 1;
  }
}

/* Look at the words of a table in a part of a text; the filter says which of its three ways may lead to one. */
static int look_through(const struct words *words, const struct table *table, const struct filter *filter,
                        const unsigned char *text, int32_t at, int32_t size, struct sightings *seen) {
  for (; at < size; at++) {
    int32_t left = size - at;
    uint64_t head = eight_bytes(text + at, left);
    uint32_t one = text[at], two = two_bytes(&head), four = hash_of(&head);
    unsigned has_one = filter->one[one], has_two = filter->two[two >> 3] >> (two & 7) & 1;
    unsigned has_four = filter->four[four >> 3] >> (four & 7) & 1;
    if (!(has_one | has_two | has_four)) continue;
    if (has_one && !look_at(words, table->one[one], head, text, at, size, seen)) return 0;
    if (has_two && left >= 2 && !look_at(words, table->two[two], head, text, at, size, seen)) return 0;
    if (has_four && left >= 4 && !look_at(words, table->four[four], head, text, at, size, seen)) return 0;
  }
  return 1;
}

/* Find every sought word at every place, and sort the places by word. */
static int sight(const struct words *words, const unsigned char *text, int32_t size, struct sightings *seen) {
  if (!look_through(words, &words->everywhere, &seen->filter, text, 0, size, seen)) return 0;
  for (size_t i = 0; i < seen->count; i++) seen->starts[seen->words[i] + 1]++;
  for (int32_t i = 0; i < words->placed; i++) seen->starts[i + 1] += seen->starts[i];
  for (size_t i = 0; i < seen->count; i++) seen->sorted[seen->starts[seen->words[i]]++] = seen->places[i];
  for (int32_t i = words->placed; i > 0; i--) seen->starts[i] = seen->starts[i - 1];
  seen->starts[0] = 0;
  return 1;
}

/* Return whether one word of each group has the stamp of the part that was looked through. */
static int has_groups(const struct sightings *seen, int32_t stamp, const int32_t *group) {
  for (int32_t groups = *group++; groups > 0; groups--) {
    int32_t length = *group++, has_one = 0;
    for (int32_t i = 0; i < length && !has_one; i++) has_one = seen->stamps[group[i]] == stamp;
    if (!has_one) return 0;
    group += length;
  }
  return 1;
}

/* Return whether one word of each group is in the window, none of them before all words of the groups before it. */
static int has_row(const struct sightings *seen, const int32_t *group) {
  int32_t least = 0;
  for (int32_t groups = *group++; groups > 0; groups--) {
    int32_t length = *group++, first = INT32_MAX, last = -1;
    for (int32_t i = 0; i < length; i++) {
      if (seen->stamps[group[i]] != seen->stamp) continue;
      if (seen->firsts[group[i]] < first) first = seen->firsts[group[i]];
      if (seen->lasts[group[i]] > last) last = seen->lasts[group[i]];
    }
    if (last < least) return 0;
    if (first > least) least = first;
    group += length;
  }
  return 1;
}

/* Return whether a part that was looked through has the words of an alternative; without any everything may match. */
static int has_any_row(const struct sightings *seen, const int32_t *plan) {
  int32_t count = *plan++;
  if (count == 0) return 1;
  for (; count > 0; count--, plan += *plan + 1)
    if (has_row(seen, plan + 1)) return 1;
  return 0;
}

/* Look for the words of windows in a part of a text; return 0 without memory. */
static int look_folded(struct words *words, const unsigned char *text, int32_t size) {
  if ((size_t)size > words->folded_room) {
    unsigned char *more = realloc(words->folded, (size_t)size);
    if (!more) return 0;
    words->folded = more;
    words->folded_room = (size_t)size;
  }
  words->seen.stamp++;
  int32_t length = fold(text, size, words->folded);
  return look_through(words, &words->windows, &words->windows.filter, words->folded, 0, length, &words->seen);
}

/* Return whether a window has the words of one of the alternatives; without alternatives everything may match. */
static int has_alternative(struct words *words, const int32_t *plan, const unsigned char *text, int32_t low,
                           int32_t high) {
  return *plan == 0 || !look_folded(words, text + low, high - low) || has_any_row(&words->seen, plan);
}

static const int32_t *behind_groups(const int32_t *groups) {
  for (int32_t left = *groups++; left > 0; left--) groups += *groups + 1;
  return groups;
}

/* Return whether the words that a sign needs are near a place, which is looked through once for all signs. */
static int has_near(const struct words *words, struct sightings *seen, const int32_t *groups, const unsigned char *text,
                    int32_t at, int32_t size) {
  if (*groups == 0) return 1;
  if (seen->near_at != at + 1) {
    seen->near_at = at + 1;
    seen->near_stamp = ++seen->stamp;
    int32_t low = at > BEFORE ? at - BEFORE : 0, high = size - at < AFTER ? size : at + AFTER;
    look_through(words, &words->nearby, &words->nearby.filter, text, low, high, seen);
  }
  return has_groups(seen, seen->near_stamp, groups);
}

static int32_t line_start(const unsigned char *text, int32_t at, int32_t least) {
  if (least < 0) least = 0;
  for (; at > least; at--)
    if (text[at - 1] == '\n') return at;
  return least;
}

/* As `_window` of lint/security.py. */
static void find_window(const unsigned char *text, int32_t size, int32_t at, int32_t following, int32_t *start,
                        int32_t *end) {
  *start = line_start(text, at, at - BEFORE);
  for (int i = 0; i < 3; i++) {
    if (*start < 2 || text[*start - 2] != '\\' || text[*start - 1] != '\n' || at - *start > BEFORE) break;
    *start = line_start(text, *start - 1, at - 2 * BEFORE);
  }
  int32_t place = at, most = at + AFTER;
  while (following >= 0) {
    const unsigned char *found = place < size ? memchr(text + place, '\n', (size_t)(size - place)) : NULL;
    if (!found || found - text > most) {
      *end = !found && size < most ? size : most;
      return;
    }
    place = (int32_t)(found - text);
    unsigned char before = place > 0 ? text[place - 1] : 0;
    if (before != '\\' && before != '`' && before != '^' && before != '|') following--;
    place++;
  }
  *end = place - 1;
}

static int add_candidate(struct numbers *out, const int32_t *values) {
  if (out->count + 5 > out->room) {
    size_t room = out->room ? out->room * 2 : 320;
    int32_t *more = realloc(out->values, room * 4);
    if (!more) return 0;
    out->values = more;
    out->room = room;
  }
  memcpy(out->values + out->count, values, 5 * 4);
  out->count += 5;
  return 1;
}

/* Try the signs of a sought word at each of its places, as `_signal_hits` does; return 0 if they are too many. */
static int try_signs(struct words *words, struct sightings *seen, const unsigned char *text, int32_t size,
                     const int32_t *record, const int32_t *signs, int32_t *tries, struct numbers *out) {
  int32_t word = *record++, tokens = *record++, free_from = -1;
  record += tokens;
  int32_t count = *record++;
  for (int32_t i = seen->starts[word]; i < seen->starts[word + 1]; i++) {
    int32_t at = seen->sorted[i];
    if (at < free_from) continue;
    free_from = at + words->lengths[word];
    for (int32_t j = 0; j < count; j++) {
      const int32_t *sign = words->plan + signs[record[j]];
      if (++tries[record[j]] > MOST_TRIES) return 0;
      int32_t following = *sign++, start, end;
      if (!has_near(words, seen, sign, text, at, size)) continue;
      sign = behind_groups(sign);
      find_window(text, size, at, following, &start, &end);
      int32_t values[5] = {record[j], at, start, end, has_alternative(words, sign, text, start, end)};
      if (!add_candidate(out, values)) return 0;
    }
  }
  return 1;
}

/* Write the numbers of the words of marks and of the tokens that occur; return how many bytes these are. */
static Py_ssize_t known_words(const struct words *words, struct sightings *seen) {
  Py_ssize_t count = 0;
  for (int32_t i = words->placed; i < words->tokens; i++)
    if (seen->flags[i]) seen->known[count++] = i - words->placed;
  return count * 4;
}

/* Return the marks of a text, a byte for each, the numbers of the words of marks and of the tokens that occur, and the
   places where signs are to be tried; None if that is not the plain case. */
static PyObject *answer(struct words *words, const unsigned char *text, int32_t size, struct sightings *seen,
                        int32_t *tries, struct numbers *out) {
  const int32_t *marks = words->plan + 4, *sought = marks + 1;
  for (int32_t i = 0; i < *marks; i++) sought += *sought + 1;
  const int32_t *record = sought + 1, *signs = record;
  for (int32_t i = 0; i < *sought; i++) signs += *signs + 1;
  find_tokens(words, text, size, seen);
  choose_words(words, record, *sought, seen);
  if (!sight(words, text, size, seen)) Py_RETURN_NONE;
  for (int32_t i = 0; i < *sought; i++, record += *record + 1)
    if (seen->starts[record[1]] < seen->starts[record[1] + 1] &&
        !try_signs(words, seen, text, size, record + 1, signs + 1, tries, out))
      Py_RETURN_NONE;
  PyObject *found = PyBytes_FromStringAndSize(NULL, *marks);
  if (!found) return NULL;
  char *mark = PyBytes_AsString(found);
  const int32_t *word = marks + 1;
  for (int32_t i = 0; i < *marks; i++, word += *word + 1) {
    mark[i] = 0;
    for (int32_t j = 1; j <= *word; j++) mark[i] |= (char)seen->flags[word[j]];
  }
  Py_ssize_t known = known_words(words, seen), candidates = (Py_ssize_t)(out->count * 4);
  return Py_BuildValue("Ny#y#", found, (char *)seen->known, known, out->count ? (char *)out->values : "", candidates);
}

static PyObject *find_words(PyObject *module, PyObject *arguments) {
  PyObject *capsule;
  const char *text;
  Py_ssize_t size;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "Oy#", &capsule, &text, &size)) return NULL;
  struct words *words = PyCapsule_GetPointer(capsule, "skillshelf.words");
  if (!words) return NULL;
  if (size > 1 << 24) Py_RETURN_NONE;
  forget(words);
  return answer(words, (const unsigned char *)text, (int32_t)size, &words->seen, words->seen.tries, &words->out);
}

/* Look through a whole text for the words of windows, unless that was the last one; return 0 without memory. */
static int look_once(struct words *words, PyObject *text) {
  if (text == words->last_text) return 1;
  forget(words);
  if (!look_folded(words, (const unsigned char *)PyBytes_AsString(text), (int32_t)PyBytes_Size(text))) return 0;
  words->last_text = Py_NewRef(text);
  return 1;
}

/* possible_signs(words, text, first, count): a byte for each of some signs, whether the text has the words of one of
   its alternatives. */
static PyObject *possible_signs(PyObject *module, PyObject *arguments) {
  PyObject *capsule, *text;
  int first, count;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OSii", &capsule, &text, &first, &count)) return NULL;
  struct words *words = PyCapsule_GetPointer(capsule, "skillshelf.words");
  if (!words) return NULL;
  if (PyBytes_Size(text) > 1 << 24) Py_RETURN_NONE;
  if (first < 0 || count < 0 || first > words->signs - count) {
    PyErr_SetString(PyExc_ValueError, "there are no such signs");
    return NULL;
  }
  if (!look_once(words, text)) Py_RETURN_NONE;
  PyObject *found = PyBytes_FromStringAndSize(NULL, count);
  if (!found) return NULL;
  char *flags = PyBytes_AsString(found);
  const int32_t *starts = words->plan + words->first_sign + first;
  for (int i = 0; i < count; i++)
    flags[i] = (char)has_any_row(&words->seen, behind_groups(words->plan + starts[i] + 1));
  return found;
}

/* Module ------------------------------------------------------------------------------------------------------- */

static PyMethodDef METHODS[] = {
    {"packed_stamps", packed_stamps, METH_VARARGS, "packed_stamps(folder, paths): as `files.packed_stamps`."},
    {"compile_words", compile_words, METH_VARARGS, "compile_words(text, lengths, plan): words to look for."},
    {"find_words", find_words, METH_VARARGS, "find_words(words, text): as `_signal_hits` of `lint/security.py` looks."},
    {"possible_signs", possible_signs, METH_VARARGS, "possible_signs(words, text, first, count): as `search` of `lint/security_search.py` asks."},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module) {
  if (PyModule_AddIntConstant(module, "FIRST_READ", FIRST_READ) < 0) return -1;
  if (PyModule_AddIntConstant(module, "MOST_CHILDREN", MOST_CHILDREN) < 0) return -1;
  if (PyModule_AddIntConstant(module, "BEFORE", BEFORE) < 0) return -1;
  if (PyModule_AddIntConstant(module, "AFTER", AFTER) < 0) return -1;
  if (PyModule_AddIntConstant(module, "MOST_TRIES", MOST_TRIES) < 0) return -1;
  return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill_module}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_doc = "Loops over many files.", .m_methods = METHODS, .m_slots = SLOTS};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&MODULE); }
