/* Text, files of /proc and descriptors, without anything that allocates memory. */
#include "system.h"

#include <fcntl.h>
#include <string.h>

enum { max_line = 512, listing_bytes = 4096, text_bytes = 4096, mapping_bytes = 128 };

/* What getdents64(2) fills in. */
struct entry {
  unsigned long long inode;
  long long offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

int fail(struct failure *failure, const char *step) {
  failure->step = step;
  failure->error = errno;
  return 0;
}

int write_file(const char *path, const char *text) {
  long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) return 0;
  long length = (long)strlen(text);
  int is_written = syscall(SYS_write, file, text, length) == length;
  int error = errno;
  syscall(SYS_close, file);
  errno = error;
  return is_written;
}

char *append(char *end, const char *limit, const char *text) {
  while (*text != 0 && end < limit - 1) *end++ = *text++;
  *end = 0;
  return end;
}

char *append_number(char *end, const char *limit, long number) {
  char digits[24];
  char *first = digits + sizeof digits - 1;
  *first = 0;
  do {
    *--first = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return append(end, limit, first);
}

void report_number(int connection, const char *name, long number) {
  char line[max_line], *limit = line + sizeof line;
  char *end = append(append(append(line, limit, "{\""), limit, name), limit, "\": ");
  end = append(append_number(end, limit, number), limit, "}\n");
  syscall(SYS_write, connection, line, end - line);
}

void report_failure(int connection, const struct failure *failure) {
  char line[max_line], *limit = line + sizeof line;
  char *end = append(append(line, limit, "{\"failed\": \""), limit, failure->step);
  end = append_number(append(end, limit, ": errno "), limit, failure->error);
  end = append(end, limit, "\"}\n");
  syscall(SYS_write, connection, line, end - line);
}

void each_number(const char *directory, void (*visit)(int number, void *data), void *data) {
  long list = syscall(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (list < 0) return;
  _Alignas(struct entry) char listing[listing_bytes];
  long length;
  while ((length = syscall(SYS_getdents64, list, listing, sizeof listing)) > 0) {
    for (long at = 0; at < length; at += ((struct entry *)(listing + at))->length) {
      const char *name = ((struct entry *)(listing + at))->name;
      if (*name == '.') continue;
      int number = 0;
      for (; *name != 0; name++) number = number * 10 + (*name - '0');
      if (number != list) visit(number, data);
    }
  }
  syscall(SYS_close, list);
}

static void close_unless(int descriptor, void *kept) {
  if (descriptor != *(int *)kept) syscall(SYS_close, descriptor);
}

void close_all_but(int kept) { each_number("/proc/self/fd", close_unless, &kept); }

/* A text file, by lines. */
struct lines {
  long file;
  long length, at;
  char text[text_bytes];
};

/* The next line, cut to the size of `line`; false at the end. */
static int next_line(struct lines *lines, char *line, size_t size) {
  size_t length = 0;
  for (;;) {
    if (lines->at == lines->length) {
      lines->length = syscall(SYS_read, lines->file, lines->text, sizeof lines->text);
      lines->at = 0;
      if (lines->length <= 0) return lines->length = 0;
    }
    char character = lines->text[lines->at++];
    if (character == '\n') break;
    if (length < size - 1) line[length++] = character;
  }
  line[length] = 0;
  return 1;
}

static unsigned long hexadecimal(const char **text) {
  unsigned long number = 0;
  for (;; (*text)++) {
    char digit = **text;
    if (digit >= '0' && digit <= '9') number = number * 16 + (unsigned long)(digit - '0');
    else if (digit >= 'a' && digit <= 'f') number = number * 16 + (unsigned long)(digit - 'a') + 10;
    else return number;
  }
}

/* Of /proc/self/maps: `start-end rwxp offset device inode path`. */
static int is_private_and_anonymous(const char *permissions) {
  if (permissions[3] != 'p') return 0;
  int field = 0;
  const char *at = permissions;
  for (; *at != 0 && field < 3; at++) field += *at == ' ';
  return at[0] == '0' && (at[1] == ' ' || at[1] == 0);
}

int each_anonymous_mapping(void (*visit)(unsigned long start, unsigned long end, void *data), void *data) {
  struct lines maps = {.length = 0};
  maps.file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (maps.file < 0) return 0;
  char line[mapping_bytes];
  while (next_line(&maps, line, sizeof line)) {
    const char *at = line;
    unsigned long start = hexadecimal(&at);
    at++;
    unsigned long end = hexadecimal(&at);
    if (is_private_and_anonymous(at + 1)) visit(start, end, data);
  }
  syscall(SYS_close, maps.file);
  return 1;
}
