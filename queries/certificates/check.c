/* A forward checker of DRAT proofs in text form.
 *
 *   check FORMULA.cnf PROOF.drat
 *
 * Prints "verified" and exits 0 if every step follows and the proof ends in the empty clause; otherwise prints what is
 * at fault and exits 1 (2: a file cannot be read, 3: memory ran out).
 * Used where drat-trim is not installed, which checks the same files, and with which the tests compare it.
 * A step is an addition (RUP, or else RAT on its first literal) or a deletion. As in drat-trim, deleting a clause that
 * is the reason of a literal assigned by unit propagation alone is ignored, and so is a deletion of nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

typedef struct { long start; int size; int active; int next; } Clause;
typedef struct { int *at; int size, room; } List;

typedef struct {
  int *pool; long used, room;              /* literals of all clauses */
  Clause *clauses; int count, capacity;
  int *heads; int buckets;                 /* hash table: last clause of each bucket */
  int variables;
  List *watches;                           /* by literal: clauses that watch it */
  int *occurs;                             /* by literal: active clauses that hold it */
  signed char *value;                      /* by literal: 1 true, -1 false, 0 open */
  int *reason;                             /* by variable: clause that assigned it for good, or -1 */
  int *trail; int assigned, propagated;
  int refuted;
  int *line; int length, line_room;        /* the clause just read */
  int *mark;                               /* by literal: a stamp, to drop repeated literals */
  int stamp;
  int failed;                              /* memory ran out */
} Checker;

static int at(int literal) { return literal > 0 ? 2 * literal : -2 * literal + 1; }

static void *grown(Checker *c, void *block, long bytes) {
  void *found = c->failed ? NULL : realloc(block, bytes > 0 ? (size_t)bytes : 1);
  if (!found) { c->failed = 1; return block; }
  return found;
}

static void widen(Checker *c, int variables) {
  if (variables <= c->variables) return;
  int old = c->variables, wide = variables > 2 * old ? variables : 2 * old;
  long cells = 2L * wide + 2, before = old ? 2L * old + 2 : 0;
  c->watches = grown(c, c->watches, cells * (long)sizeof(List));
  c->occurs = grown(c, c->occurs, cells * (long)sizeof(int));
  c->value = grown(c, c->value, cells);
  c->mark = grown(c, c->mark, cells * (long)sizeof(int));
  c->reason = grown(c, c->reason, (wide + 1L) * (long)sizeof(int));
  c->trail = grown(c, c->trail, (wide + 1L) * (long)sizeof(int));
  if (c->failed) return;
  memset(c->watches + before, 0, (size_t)(cells - before) * sizeof(List));
  memset(c->occurs + before, 0, (size_t)(cells - before) * sizeof(int));
  memset(c->mark + before, 0, (size_t)(cells - before) * sizeof(int));
  memset(c->value + before, 0, (size_t)(cells - before));
  for (long i = old ? old + 1 : 0; i <= wide; i++) c->reason[i] = -1;
  c->variables = wide;
}

static void push(Checker *c, List *list, int item) {
  if (list->size == list->room) {
    int room = list->room ? 2 * list->room : 4;
    list->at = grown(c, list->at, room * (long)sizeof(int));
    if (c->failed) return;
    list->room = room;
  }
  list->at[list->size++] = item;
}

static void assign(Checker *c, int literal, int reason) {
  c->value[at(literal)] = 1;
  c->value[at(-literal)] = -1;
  c->reason[abs(literal)] = reason;
  c->trail[c->assigned++] = literal;
}

/* Unit propagation; 1 if it meets a conflict. */
static int propagate(Checker *c) {
  while (c->propagated < c->assigned) {
    int falsified = -c->trail[c->propagated++];
    List *list = &c->watches[at(falsified)];
    int kept = 0, conflict = 0;
    for (int i = 0; i < list->size; i++) {
      int index = list->at[i];
      Clause *clause = &c->clauses[index];
      if (!clause->active) continue; /* forgotten */
      if (conflict) { list->at[kept++] = index; continue; }
      int *literals = c->pool + clause->start;
      if (literals[0] == falsified) { literals[0] = literals[1]; literals[1] = falsified; }
      if (c->value[at(literals[0])] > 0) { list->at[kept++] = index; continue; }
      int found = 0;
      for (int k = 2; k < clause->size && !found; k++)
        if (c->value[at(literals[k])] >= 0) {
          literals[1] = literals[k];
          literals[k] = falsified;
          push(c, &c->watches[at(literals[1])], index);
          found = 1;
        }
      if (found) continue;
      list->at[kept++] = index;
      if (c->value[at(literals[0])] < 0) conflict = 1;
      else assign(c, literals[0], index);
    }
    list->size = kept;
    if (conflict) return 1;
  }
  return 0;
}

static void retract(Checker *c, int size) {
  while (c->assigned > size) {
    int literal = c->trail[--c->assigned];
    c->value[at(literal)] = c->value[at(-literal)] = 0;
    c->reason[abs(literal)] = -1;
  }
  c->propagated = size;
}

/* Whether assuming the negation of some literals (one may be left out) is refuted by propagation. Leaves the
   assignment as it is; the caller retracts. */
static int refutes(Checker *c, const int *literals, int size, int without) {
  for (int i = 0; i < size; i++) {
    if (literals[i] == without) continue;
    signed char value = c->value[at(literals[i])];
    if (value > 0) return 1;
    if (!value) assign(c, -literals[i], -1);
  }
  return propagate(c);
}

static int is_rat(Checker *c) {
  int pivot = c->line[0], kept = c->assigned, left = c->occurs[at(-pivot)];
  for (int index = c->count - 1; left > 0 && index >= 0; index--) { /* newest first: definitions meet soonest */
    Clause *clause = &c->clauses[index];
    if (!clause->active) continue;
    const int *literals = c->pool + clause->start;
    int holds = 0;
    for (int k = 0; k < clause->size && !holds; k++) holds = literals[k] == -pivot;
    if (!holds) continue;
    left--;
    /* watched literals move while propagating, so the clause is copied */
    int *copy = malloc((size_t)clause->size * sizeof(int));
    if (!copy) { c->failed = 1; return 0; }
    memcpy(copy, literals, (size_t)clause->size * sizeof(int));
    int fine = refutes(c, copy, clause->size, -pivot);
    free(copy);
    retract(c, kept);
    if (!fine) return 0;
  }
  return 1;
}

static uint32_t hashed(const int *literals, int size) {
  uint32_t sum = 0, product = 1, mixed = 0; /* of a set: order does not matter */
  for (int i = 0; i < size; i++) {
    uint32_t x = (uint32_t)at(literals[i]);
    sum += x; product *= 2 * x + 1; mixed ^= x * 2654435761u;
  }
  return (1023u * sum + product) ^ (31u * mixed);
}

static void rehash(Checker *c) {
  int buckets = c->buckets ? 4 * c->buckets : 1 << 14;
  c->heads = grown(c, c->heads, buckets * (long)sizeof(int));
  if (c->failed) return;
  c->buckets = buckets;
  for (int i = 0; i < buckets; i++) c->heads[i] = -1;
  for (int i = 0; i < c->count; i++) {
    Clause *clause = &c->clauses[i];
    if (!clause->active) continue;
    uint32_t slot = hashed(c->pool + clause->start, clause->size) & (uint32_t)(buckets - 1);
    clause->next = c->heads[slot];
    c->heads[slot] = i;
  }
}

/* Adds the clause just read and what follows from it by propagation. */
static void add(Checker *c) {
  if (c->count == c->capacity) {
    int capacity = c->capacity ? 2 * c->capacity : 1 << 14;
    c->clauses = grown(c, c->clauses, capacity * (long)sizeof(Clause));
    if (c->failed) return;
    c->capacity = capacity;
  }
  if (c->used + c->length > c->room) {
    long room = 2 * c->room + c->length + 1024;
    c->pool = grown(c, c->pool, room * (long)sizeof(int));
    if (c->failed) return;
    c->room = room;
  }
  if (c->count >= c->buckets) rehash(c);
  if (c->failed) return;
  int index = c->count++, open = 0, satisfied = 0;
  Clause *clause = &c->clauses[index];
  int *literals = c->pool + c->used;
  clause->start = c->used;
  clause->size = c->length;
  clause->active = 1;
  memcpy(literals, c->line, (size_t)c->length * sizeof(int));
  c->used += c->length;
  uint32_t slot = hashed(literals, clause->size) & (uint32_t)(c->buckets - 1);
  clause->next = c->heads[slot];
  c->heads[slot] = index;
  for (int i = 0; i < clause->size; i++) {
    c->occurs[at(literals[i])]++;
    if (c->value[at(literals[i])] > 0) satisfied = 1;
    if (c->value[at(literals[i])] >= 0 && open < 2) { /* two literals that are not false come first */
      int swap = literals[open]; literals[open] = literals[i]; literals[i] = swap;
      open++;
    }
  }
  if (clause->size > 1) {
    push(c, &c->watches[at(literals[0])], index);
    push(c, &c->watches[at(literals[1])], index);
  }
  if (c->refuted || satisfied || open > 1) return;
  if (!open) { c->refuted = 1; return; }
  assign(c, literals[0], index);
  c->refuted = propagate(c);
}

static void forget(Checker *c) {
  int stamp = ++c->stamp;
  if (!c->buckets) return;
  for (int i = 0; i < c->length; i++) c->mark[at(c->line[i])] = stamp;
  int *link = &c->heads[hashed(c->line, c->length) & (uint32_t)(c->buckets - 1)];
  for (; *link >= 0; link = &c->clauses[*link].next) {
    Clause *clause = &c->clauses[*link];
    const int *literals = c->pool + clause->start;
    int same = clause->size == c->length;
    for (int i = 0; i < clause->size && same; i++) same = c->mark[at(literals[i])] == stamp;
    if (!same) continue;
    for (int i = 0; i < clause->size; i++)
      if (c->value[at(literals[i])] > 0 && c->reason[abs(literals[i])] == *link) return;
    clause->active = 0;
    for (int i = 0; i < clause->size; i++) c->occurs[at(literals[i])]--;
    *link = clause->next;
    return;
  }
}

/* Reads one clause up to its 0, without repeated literals; 0 at the end of the text, -1 if it is not a clause. */
static int read_clause(Checker *c, const char **text) {
  int stamp = ++c->stamp;
  c->length = 0;
  for (int first = 1;; first = 0) {
    while (**text == ' ' || **text == '\t' || **text == '\n' || **text == '\r') (*text)++;
    if (!**text) return first ? 0 : -1;
    char *end;
    long number = strtol(*text, &end, 10);
    if (end == *text || number > 500000000L || number < -500000000L) return -1;
    *text = end;
    if (!number) return 1;
    widen(c, (int)labs(number));
    if (c->failed) return -1;
    if (c->mark[at((int)number)] == stamp) continue;
    c->mark[at((int)number)] = stamp;
    if (c->length == c->line_room) {
      c->line_room = 2 * c->line_room + 64;
      c->line = grown(c, c->line, c->line_room * (long)sizeof(int));
      if (c->failed) return -1;
    }
    c->line[c->length++] = (int)number;
  }
}

/* The text after white space and comment lines. */
static const char *skip(const char *text) {
  for (;;) {
    while (*text && strchr(" \t\r\n", *text)) text++;
    if (*text != 'c') return text;
    while (*text && *text != '\n') text++;
  }
}

static int read_formula(Checker *c, const char *text) {
  long variables, clauses, seen = 0;
  text = skip(text);
  char *end;
  if (strncmp(text, "p cnf ", 6)) return 0;
  variables = strtol(text + 6, &end, 10);
  clauses = strtol(end, &end, 10);
  for (text = end;; seen++) {
    text = skip(text);
    int status = read_clause(c, &text);
    if (status < 0) return 0;
    if (!status) return seen == clauses;
    for (int i = 0; i < c->length; i++)
      if (abs(c->line[i]) > variables) return 0;
    add(c);
    if (c->failed) return 0;
  }
}

static int follows(Checker *c) {
  if (c->refuted) return 1;
  int kept = c->assigned;
  int fine = refutes(c, c->line, c->length, 0);
  if (!fine && c->length) fine = is_rat(c);
  retract(c, kept);
  return fine;
}

/* 0 if the proof stands, else the exit status, with a reason in `why` and the step in `number`. */
static int run(Checker *c, const char *cnf, const char *proof, const char **why, long *number) {
  *why = "the formula cannot be read";
  if (!read_formula(c, cnf)) return 2;
  for (*number = 1;; ++*number) {
    proof = skip(proof);
    int deletion = *proof == 'd';
    if (deletion) proof++;
    *why = "not a clause";
    int status = read_clause(c, &proof);
    if (status < 0 || (deletion && !status)) return 1;
    if (!status) break;
    if (deletion) { forget(c); continue; }
    *why = "the clause does not follow";
    if (!follows(c)) return 1;
    if (!c->length) return 0;
    add(c);
    if (c->failed) return 3;
  }
  *number = 0;
  *why = "the proof does not end in the empty clause";
  return 1;
}

static char *read_file(const char *name) {
  FILE *file = fopen(name, "rb");
  if (!file) return NULL;
  char *text = NULL;
  if (!fseek(file, 0, SEEK_END)) {
    long size = ftell(file);
    rewind(file);
    text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (text) text[fread(text, 1, (size_t)size, file)] = 0;
  }
  fclose(file);
  return text;
}

int main(int count, char **arguments) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* asked for here: between fork and exec Python cannot without risk to threads */
#endif
  if (count != 3) { puts("usage: check FORMULA.cnf PROOF.drat"); return 2; }
  char *cnf = read_file(arguments[1]), *proof = read_file(arguments[2]);
  if (!cnf || !proof) { puts("a file cannot be read"); return 2; }
  Checker checker;
  memset(&checker, 0, sizeof checker);
  widen(&checker, 1);
  const char *why = "";
  long number = 0;
  int status = run(&checker, cnf, proof, &why, &number);
  if (checker.failed) { status = 3; why = "memory ran out"; }
  if (!status) puts("verified");
  else if (number) printf("step %ld: %s\n", number, why);
  else puts(why);
  return status;
}
