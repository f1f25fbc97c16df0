#include "data/token_cache_builder.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "base/error.h"
#include "data/chat_template.h"
#include "data/row_source.h"
#include "data/row_tokenizer.h"
#include "data/token_cache_format.h"
#include "data/token_cache_writer.h"
#include "data/tsv_reader.h"
#include "formats/file.h"
#include "tokenizer/pipeline.h"

namespace headroom {
namespace {

constexpr size_t kReadBytes = 65536;
constexpr int64_t kProgressBytes = int64_t{1} << 20;

enum class FileKind { text, rows, table };

FileKind kind_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".txt") return FileKind::text;
  if (extension == ".jsonl" || extension == ".json") return FileKind::rows;
  if (extension == ".tsv") return FileKind::table;
  throw Error(ErrorKind::usage, fmt::format("{}: data of the kind '{}' is not known", path.string(), extension),
              "give a .txt, .jsonl, .json or .tsv file");
}

// A tokenizer is identified by all its tokens and by its ids for a text with letters, digits, spaces and marks.
uint64_t tokenizer_identity(const Tokenizer& tokenizer) {
  constexpr std::string_view probe =
      "The quick brown fox's 12345 jumps,  over\n\n\tthe LAZY dog; it won't \"stop\" (not at 3.14159!) caf\xc3\xa9 "
      "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80";
  Checksum hash;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string token = tokenizer.token(static_cast<int32_t>(id));
    hash.add(std::as_bytes(std::span(token)));
    hash.add_value(static_cast<uint64_t>(token.size()));
  }
  for (const int32_t id : tokenizer.encode(probe, true)) hash.add_value(id);
  hash.add_value(tokenizer.eos_id().value_or(-1));
  hash.add_value(tokenizer.bos_id().value_or(-1));
  return hash.value();
}

// The special tokens that the tokenizer puts around two texts.
void add_pair_template(const Tokenizer& tokenizer, Checksum& key) {
  const std::optional<PairTemplate>& pair = tokenizer.pipeline().post_processor().pair;
  key.add_value(pair.has_value());
  if (!pair) return;
  for (const std::vector<int32_t>* ids : {&pair->prefix, &pair->middle, &pair->suffix}) {
    key.add_value(static_cast<uint64_t>(ids->size()));
    key.add(std::as_bytes(std::span(*ids)));
  }
  key.add_value(pair->type_0(1, 1000));
}

struct Progress {
  const DataProgress& report;
  int64_t total;
  int64_t before = 0;  // bytes of the finished files
  int64_t reported = 0;
  void at(int64_t bytes_of_file) {
    if (!report || before + bytes_of_file - reported < kProgressBytes) return;
    reported = before + bytes_of_file;
    report(reported, total);
  }
};

void add_text_file(const std::filesystem::path& path, RowTokenizer& rows, Progress& progress) {
  const File file = File::open(path);
  const std::string name = path.string();
  const RowPlace place{name, 0, 0};
  std::array<char, kReadBytes> buffer;
  int64_t offset = 0;
  while (const int64_t n = file.read_some_at(offset, std::as_writable_bytes(std::span(buffer)))) {
    std::string_view chunk(buffer.data(), static_cast<size_t>(n));
    if (offset == 0 && chunk.substr(0, 3) == "\xef\xbb\xbf") chunk.remove_prefix(3);
    rows.add_stream(chunk, place);
    file.drop_cache(offset, n);
    offset += n;
    progress.at(offset);
  }
  if (offset == 0) throw Error(ErrorKind::format, fmt::format("{} is empty", name), "give a file with text");
  rows.end_stream(place);
}

void add_row_file(const std::filesystem::path& path, int64_t row_limit, RowTokenizer& rows, Progress& progress) {
  RowSource source(path, row_limit);
  RowBytes bytes;
  RowPlace place;
  std::optional<RowKind> kind;
  int64_t kind_line = 0;
  while (source.next(bytes, place)) {
    const Row row = parse_row(bytes, place);
    if (kind && *kind != row.kind)
      refuse_row(place,
                 fmt::format("a row of {{{}}} among rows of {{{}}} (line {})", row_kind_keys(row.kind),
                             row_kind_keys(*kind), kind_line),
                 "put each kind of rows in a file of its own and give --data twice");
    if (!kind) {
      kind = row.kind;
      kind_line = place.line;
    }
    rows.add(row, place);
    progress.at(source.bytes_read());
  }
  if (!kind)
    throw Error(ErrorKind::format, fmt::format("{} holds no rows", path.string()), "give a file with at least one row");
}

void add_table_file(const std::filesystem::path& path, int64_t row_limit, RowTokenizer& rows, Progress& progress) {
  RowSource source(path, row_limit, RowFormat::lines);
  TsvReader reader;
  RowBytes line;
  RowPlace place;
  bool empty = true;
  while (source.next(line, place)) {
    const std::optional<Row> row = reader.read(line, place);
    if (!row) continue;
    rows.add(*row, place);
    empty = false;
    progress.at(source.bytes_read());
  }
  if (empty)
    throw Error(ErrorKind::format, fmt::format("{} holds no rows", path.string()), "give a file with at least one row");
}

int64_t total_bytes(const DataOptions& options) {
  int64_t bytes = 0;
  for (const auto& path : options.files) bytes += File::open(path).size();
  return bytes;
}

void check(const DataOptions& options) {
  HR_CHECK(options.max_seq_length >= 1 && options.vocab_size >= 1 && options.row_limit_bytes >= 1,
           "sequences of {} ids below {}, rows of {} bytes", options.max_seq_length, options.vocab_size,
           options.row_limit_bytes);
  if (options.files.empty()) throw Error(ErrorKind::usage, "no data was given", "give --data FILE");
  for (const auto& path : options.files) kind_of(path);
}

DataCounts write_cache(const DataOptions& options, const Tokenizer* tokenizer, TokenCacheWriter& writer,
                       const DataProgress& progress) {
  Progress report{progress, total_bytes(options)};
  RowTokenizer rows(tokenizer, options.max_seq_length, options.vocab_size, writer, options.tokenizer_folder,
                    options.classes, options.token_types, options.chat_bytes);
  for (const auto& path : options.files) {
    switch (kind_of(path)) {
      case FileKind::text:
        add_text_file(path, rows, report);
        break;
      case FileKind::rows:
        add_row_file(path, options.row_limit_bytes, rows, report);
        break;
      case FileKind::table:
        add_table_file(path, options.row_limit_bytes, rows, report);
        break;
    }
    report.before += File::open(path).size();
  }
  if (writer.targets() == 0)
    throw Error(ErrorKind::format,
                fmt::format("{}: no token of the {} rows is scored ({} are empty)", options.files.front().string(),
                            rows.counts().rows, rows.counts().empty_rows),
                "give rows with text, conversations in which the assistant speaks, labels other than -100 after the "
                "first token, and a --max-seq-length that leaves some of what is scored");
  return writer.finish(rows.counts());
}

}  // namespace

uint64_t token_cache_key(const DataOptions& options, const Tokenizer* tokenizer) {
  check(options);
  Checksum key;
  key.add_value(kTokenCacheVersion);
  key.add_value(options.max_seq_length);
  key.add_value(options.vocab_size);
  key.add_value(tokenizer == nullptr ? uint64_t{0} : tokenizer_identity(*tokenizer));
  if (options.labels != LabelKind::next_token) key.add_value(static_cast<uint64_t>(options.labels));
  if (options.labels == LabelKind::sequence_class) {
    key.add_value(options.classes.key());
    key.add_value(options.token_types);
    if (tokenizer != nullptr) add_pair_template(*tokenizer, key);
  }
  if (const uint64_t chat = chat_template_key(options.tokenizer_folder); chat != 0) key.add_value(chat);
  for (const auto& path : options.files) {
    const int64_t size = File::open(path).size();
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
      throw Error(ErrorKind::usage, fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)),
                  "check the path and its permissions");
    const std::string name = path.filename().string();
    key.add(std::as_bytes(std::span(name)));
    key.add_value(size);
    key.add_value(static_cast<int64_t>(status.st_mtim.tv_sec));
    key.add_value(static_cast<int64_t>(status.st_mtim.tv_nsec));
  }
  return key.value();
}

DataCounts build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                             const std::filesystem::path& cache_path, const DataProgress& progress) {
  TokenCacheWriter writer(cache_path, token_cache_key(options, tokenizer), options.max_seq_length, options.vocab_size,
                          options.labels);
  return write_cache(options, tokenizer, writer, progress);
}

TokenCache build_nameless_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                      const std::filesystem::path& directory) {
  TokenCacheWriter writer(TokenCacheWriter::Nameless::yes, directory, token_cache_key(options, tokenizer),
                          options.max_seq_length, options.vocab_size, options.labels);
  write_cache(options, tokenizer, writer, {});
  return TokenCache::open(writer.take());
}

TokenCache open_or_build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                     const std::filesystem::path& cache_path, bool* reused,
                                     const DataProgress& progress) {
  const uint64_t key = token_cache_key(options, tokenizer);
  if (reused != nullptr) *reused = true;
  std::error_code status;
  if (std::filesystem::exists(cache_path, status)) {
    try {
      TokenCache cache = TokenCache::open(cache_path);
      if (cache.key() == key) return cache;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::format) throw;  // a damaged cache is rebuilt
    }
  }
  if (reused != nullptr) *reused = false;
  build_token_cache(options, tokenizer, cache_path, progress);
  return TokenCache::open(cache_path);
}

int64_t data_memory_bytes(int64_t max_seq_length) {
  constexpr int64_t names_and_errors = 64 << 10;
  return RowSource::memory_bytes() + RowTokenizer::memory_bytes(max_seq_length) + TokenCacheWriter::memory_bytes() +
         names_and_errors;
}

}  // namespace headroom
