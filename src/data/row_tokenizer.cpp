#include "data/row_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/alpaca_template.h"
#include "data/json_scanner.h"
#include "tokenizer/pipeline.h"

namespace headroom {
namespace {

constexpr size_t kChunk = 16384;
constexpr int64_t kPieceBytes = int64_t{64} << 10;

// What an encoder can yield at once: at most one id per byte of its normalised text, and the special tokens around.
int64_t most_pieces(const Tokenizer& tokenizer) {
  return tokenizer.pipeline().word_bytes_bound(kPieceBytes + static_cast<int64_t>(kChunk)) + 64;
}

// The errors of an encoder know no file: names it.
Error named(const Error& e, const RowPlace& place) {
  return Error(e.kind(), fmt::format("{}: {}", place.file, e.what()),
               e.remedy().empty() ? "convert the file to UTF-8" : e.remedy());
}

}  // namespace

RowTokenizer::RowTokenizer(const Tokenizer* tokenizer, int64_t max_seq_length, int64_t vocab_size,
                           TokenCacheWriter& writer, std::filesystem::path tokenizer_folder)
    : tokenizer_(tokenizer),
      max_seq_length_(max_seq_length),
      vocab_size_(vocab_size),
      writer_(writer),
      tokenizer_folder_(std::move(tokenizer_folder)) {
  ids_.reserve(static_cast<size_t>(max_seq_length));
  labels_.reserve(static_cast<size_t>(max_seq_length));
  if (tokenizer == nullptr) return;
  encoder_.emplace(*tokenizer, false, kPieceBytes);
  pieces_.reserve(static_cast<size_t>(most_pieces(*tokenizer)));
}

int64_t RowTokenizer::memory_bytes(const Tokenizer* tokenizer, int64_t max_seq_length) {
  const int64_t sequences = 2 * max_seq_length * 4;
  if (tokenizer == nullptr) return sequences;
  return sequences + most_pieces(*tokenizer) * 4 + StreamEncoder::memory_bound(*tokenizer, kPieceBytes);
}

void RowTokenizer::check_id(int32_t id, const RowPlace& place) const {
  if (id < vocab_size_) return;
  refuse_row(place, fmt::format("the tokenizer gives the id {}, the model's vocab_size is {}", id, vocab_size_),
             "use the model's own tokenizer");
}

void RowTokenizer::push(int32_t id) {
  ++row_tokens_;
  if (static_cast<int64_t>(ids_.size()) < max_seq_length_) ids_.push_back(id);
}

void RowTokenizer::flush_pieces(const RowPlace& place) {
  for (const int32_t id : pieces_) {
    check_id(id, place);
    push(id);
  }
  pieces_.clear();
}

void RowTokenizer::add_special(const std::vector<int32_t>& ids) {
  pieces_.insert(pieces_.end(), ids.begin(), ids.end());
}

void RowTokenizer::add_text(std::string_view text, const RowPlace& place) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kChunk))) {
    encoder_->feed(text.substr(0, kChunk), pieces_);
    flush_pieces(place);
  }
}

void RowTokenizer::end_text(const RowPlace& place) {
  encoder_->finish(pieces_);
  flush_pieces(place);
}

// One EOS ends a row, whether the post-processor adds it to texts or not.
void RowTokenizer::add_eos(const RowPlace& place) {
  if (tokenizer_->eos_id()) pieces_.push_back(*tokenizer_->eos_id());
  flush_pieces(place);
}

void RowTokenizer::add(const Row& row, const RowPlace& place) {
  ++counts_.rows;
  ids_.clear();
  labels_.clear();
  row_tokens_ = 0;
  if (row.kind == RowKind::ids) return add_ids(row, place);
  if (tokenizer_ == nullptr)
    refuse_row(place, fmt::format("a row of {{{}}} needs a tokenizer and the model has none", row_kind_keys(row.kind)),
               "put the model's tokenizer.json beside its config.json, or give rows of {\"input_ids\",\"labels\"}");
  if (row.kind == RowKind::messages) return add_messages(row, place);
  if (row.kind != RowKind::text) return add_prompt(row, place);
  if (row.text.empty()) {
    ++counts_.empty_rows;
    return;
  }
  add_special(tokenizer_->pipeline().post_processor().prefix);
  add_text(row.text, place);
  end_text(place);
  add_eos(place);
  writer_.append(ids_, 0);
  finish_row();
}

void RowTokenizer::add_prompt(const Row& row, const RowPlace& place) {
  const bool instruction = row.kind == RowKind::instruction;
  const std::string_view completion = instruction ? row.output : row.completion;
  if (completion.empty() && row.prompt.empty() && row.instruction.empty() && row.input.empty()) {
    ++counts_.empty_rows;
    return;
  }
  add_special(tokenizer_->pipeline().post_processor().prefix);
  if (instruction) {
    const AlpacaTemplate& form = row.input.empty() ? kAlpacaWithoutInput : kAlpacaWithInput;
    for (const std::string_view part :
         {form.before_instruction, row.instruction, form.before_input, row.input, form.before_output})
      add_text(part, place);
  } else {
    add_text(row.prompt, place);
  }
  end_text(place);
  const auto ignored = static_cast<int64_t>(ids_.size());
  add_text(completion, place);
  end_text(place);
  add_eos(place);
  if (ids_.empty()) {
    ++counts_.empty_rows;
    return;
  }
  writer_.append(ids_, ignored);
  finish_row();
}

void RowTokenizer::add_ids(const Row& row, const RowPlace& place) {
  const auto read_list = [&](std::span<char> list, int64_t at, std::string_view name, bool may_ignore,
                             std::vector<int32_t>& into) {
    JsonScanner json(list);
    int64_t count = 0;
    try {
      json.expect('[');
      for (; !json.accept(']'); ++count) {
        if (count > 0) json.expect(',');
        const int64_t value = json.integer();
        if (value >= vocab_size_ || (value < 0 && !(may_ignore && value == kIgnoredLabel)))
          refuse_row(
              place, fmt::format("{}[{}] is {}, the model's vocab_size is {}", name, count, value, vocab_size_),
              may_ignore ? "labels are -100 (ignored) or ids of the model" : "tokenise with the model's own tokenizer");
        if (count < max_seq_length_) into.push_back(static_cast<int32_t>(value));
      }
    } catch (const JsonProblem& problem) {
      refuse_row(place,
                 fmt::format("{}[{}]: {} at byte {} of the file", name, count, problem.what,
                             place.offset + at + problem.position),
                 "give a list of integers");
    }
    return count;
  };
  row_tokens_ = read_list(row.ids, row.ids_at, "input_ids", false, ids_);
  const int64_t label_count = read_list(row.labels, row.labels_at, "labels", true, labels_);
  if (label_count != row_tokens_)
    refuse_row(place, fmt::format("{} input_ids have {} labels", row_tokens_, label_count),
               "give one label per id, not shifted; -100 ignores a token");
  if (ids_.empty()) {
    ++counts_.empty_rows;
    return;
  }
  writer_.append(ids_, labels_);
  finish_row();
}

// How many of the row's tokens lie in `text`, with which its whole text begins. A token that reaches across the end of
// `text` belongs to what an end includes, and to what a beginning begins.
int64_t RowTokenizer::tokens_before(std::string_view text, bool is_end, const RowPlace& place) {
  size_t same = 0;
  bool differs = false;
  const auto compare = [&] {
    for (const int32_t id : pieces_) {
      differs = differs || same >= ids_.size() || ids_[same] != id;
      same += !differs;
    }
    pieces_.clear();
  };
  while (!text.empty() && !differs && same < ids_.size()) {
    size_t chunk = std::min(text.size(), kChunk);
    while (chunk < text.size() && (static_cast<unsigned char>(text[chunk]) & 0xc0) == 0x80) --chunk;
    encoder_->feed(text.substr(0, chunk), pieces_);
    text.remove_prefix(chunk);
    compare();
  }
  encoder_->finish(pieces_);
  compare();
  return static_cast<int64_t>(same < ids_.size() && differs && is_end ? same + 1 : same);
}

void RowTokenizer::add_messages(const Row& row, const RowPlace& place) {
  if (!chat_) chat_.emplace(tokenizer_folder_, *tokenizer_);
  const ScoredText rendered = chat_->render(row, place);
  add_text(rendered.text, place);
  end_text(place);
  if (ids_.empty()) {
    ++counts_.empty_rows;
    return;
  }
  labels_.assign(ids_.size(), kIgnoredLabel);
  for (const auto& [begin, end] : rendered.scored) {
    const std::string_view text = rendered.text;
    const auto first = static_cast<size_t>(tokens_before(text.substr(0, begin), false, place));
    if (first == ids_.size()) break;  // cut
    const auto last = static_cast<size_t>(tokens_before(text.substr(0, end), true, place));
    for (size_t t = first; t < last; ++t) labels_[t] = ids_[t];
  }
  writer_.append(ids_, labels_);
  finish_row();
}

void RowTokenizer::finish_row() {
  const int64_t lost = row_tokens_ - static_cast<int64_t>(ids_.size());
  counts_.lost_tokens += lost;
  counts_.cut_rows += lost > 0;
  ids_.clear();
}

void RowTokenizer::flush_stream(const RowPlace& place) {
  for (const int32_t id : pieces_) {
    check_id(id, place);
    ids_.push_back(id);
    if (static_cast<int64_t>(ids_.size()) < max_seq_length_) continue;
    writer_.append(ids_, 0);
    ids_.clear();
  }
  pieces_.clear();
}

void RowTokenizer::add_stream(std::string_view chunk, const RowPlace& place) {
  if (tokenizer_ == nullptr)
    throw Error(ErrorKind::usage, fmt::format("{} is text and the model has no tokenizer", place.file),
                "put the model's tokenizer.json beside its config.json");
  if (!in_stream_) add_special(tokenizer_->pipeline().post_processor().prefix);
  in_stream_ = true;
  for (; !chunk.empty(); chunk.remove_prefix(std::min(chunk.size(), kChunk))) {
    try {
      encoder_->feed(chunk.substr(0, kChunk), pieces_);
    } catch (const Error& e) {
      throw named(e, place);
    }
    flush_stream(place);
  }
}

void RowTokenizer::end_stream(const RowPlace& place) {
  try {
    encoder_->finish(pieces_);
  } catch (const Error& e) {
    throw named(e, place);
  }
  add_special(tokenizer_->pipeline().post_processor().suffix);
  flush_stream(place);
  if (!ids_.empty()) writer_.append(ids_, 0);
  ids_.clear();
  in_stream_ = false;
  ++counts_.rows;
}

}  // namespace headroom
