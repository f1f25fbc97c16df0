#include "data/row_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "data/alpaca_template.h"
#include "data/json_scanner.h"
#include "data/mask_tokens.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

constexpr int64_t kChunk = 16384;
constexpr size_t kPartPiece = 8192;
constexpr int64_t kMostPieceBytes = int64_t{64} << 10;
constexpr int64_t kLeastPieceBytes = 64;

int64_t chunk_of(int64_t piece) { return std::min<int64_t>(piece, kChunk); }

// Upper bound of the ids that an encoder of such pieces yields at once: one per byte of its normalised text, and the
// special tokens around.
int64_t most_pieces(const Tokenizer& tokenizer, int64_t piece) {
  return tokenizer.pipeline().word_bytes_bound(piece + chunk_of(piece)) + 64;
}

// The largest piece whose encoding stays within RowTokenizer::kEncoderBytes.
int64_t piece_bytes(const Tokenizer& tokenizer) {
  for (int64_t piece = kMostPieceBytes; piece >= kLeastPieceBytes; piece = piece * 3 / 4)
    if (StreamEncoder::memory_bound(tokenizer, piece) + most_pieces(tokenizer, piece) * 4 <=
        RowTokenizer::kEncoderBytes)
      return piece;
  throw Error(ErrorKind::format,
              "the tokenizer makes texts so much longer that they cannot be encoded in little memory",
              "use another tokenizer.json, or give rows of {\"input_ids\",\"labels\"}");
}

// Adds the file's name to the errors of an encoder, which does not know it.
Error named(const Error& e, const RowPlace& place) {
  return Error(e.kind(), fmt::format("{}: {}", place.file, e.what()),
               e.remedy().empty() ? "convert the file to UTF-8" : e.remedy());
}

// How much of each of two texts is kept so that both fit into `room` tokens.
std::pair<int64_t, int64_t> lengths_within(int64_t first, int64_t second, int64_t room) {
  int64_t less = std::min(first, second), more = std::max(first, second);
  if (less + more > room) {
    more = less > room ? less : std::max(less, room - less);
    if (less + more > room) {
      less = room / 2;
      more = less + room % 2;
    }
  }
  return first <= second ? std::pair(less, more) : std::pair(more, less);
}

// Throws what is not supported in the tokenizer of a GGUF, if that is why there is none.
void refuse_unread_tokenizer(const std::filesystem::path& place) {
  if (is_unread_tokenizer(place)) Tokenizer::load(place);
}

}  // namespace

RowTokenizer::RowTokenizer(const Tokenizer* tokenizer, int64_t max_seq_length, int64_t vocab_size,
                           TokenCacheWriter& writer, std::filesystem::path tokenizer_folder, ClassNames classes,
                           int64_t token_types, int64_t chat_bytes)
    : tokenizer_(tokenizer),
      max_seq_length_(max_seq_length),
      most_ids_(max_seq_length),
      vocab_size_(vocab_size),
      writer_(writer),
      tokenizer_folder_(std::move(tokenizer_folder)),
      classes_(std::move(classes)),
      token_types_(token_types),
      chat_bytes_(chat_bytes) {
  ids_.reserve(static_cast<size_t>(max_seq_length));
  labels_.reserve(static_cast<size_t>(max_seq_length));
  first_.reserve(static_cast<size_t>(max_seq_length));
  if (tokenizer == nullptr) return;
  const int64_t piece = piece_bytes(*tokenizer);
  chunk_bytes_ = static_cast<size_t>(chunk_of(piece));
  encoder_.emplace(*tokenizer, false, piece);
  pieces_.reserve(static_cast<size_t>(most_pieces(*tokenizer, piece)));
}

void RowTokenizer::check_id(int32_t id, const RowPlace& place) const {
  if (id < vocab_size_) return;
  refuse_row(place, fmt::format("the tokenizer gives the id {}, the model's vocab_size is {}", id, vocab_size_),
             "use the model's own tokenizer");
}

void RowTokenizer::push(int32_t id) {
  ++row_tokens_;
  if (static_cast<int64_t>(ids_.size()) < most_ids_) ids_.push_back(id);
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
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), chunk_bytes_))) {
    encoder_->feed(text.substr(0, chunk_bytes_), pieces_);
    flush_pieces(place);
  }
}

void RowTokenizer::add_part(const Row& row, const RowPart& part, const RowPlace& place) {
  if (part.empty()) return;
  RowText text(row, part);
  std::array<char, kPartPiece> piece;
  while (const size_t count = text.read(piece)) add_text({piece.data(), count}, place);
}

void RowTokenizer::end_text(const RowPlace& place) {
  encoder_->finish(pieces_);
  flush_pieces(place);
}

// A row ends with one EOS, whether or not the post-processor adds it to texts.
void RowTokenizer::add_eos(const RowPlace& place) {
  if (tokenizer_->eos_id()) pieces_.push_back(*tokenizer_->eos_id());
  flush_pieces(place);
}

void RowTokenizer::add(const Row& row, const RowPlace& place) {
  ++counts_.rows;
  ids_.clear();
  labels_.clear();
  row_tokens_ = 0;
  check_kind(row, place);
  if (row.kind == RowKind::ids) return add_ids(row, place);
  if (row.kind == RowKind::labelled_ids) return add_labelled_ids(row, place);
  if (tokenizer_ == nullptr) refuse_unread_tokenizer(tokenizer_folder_);
  if (tokenizer_ == nullptr)
    refuse_row(place, fmt::format("a row of {{{}}} needs a tokenizer and the model has none", row_kind_keys(row.kind)),
               "put the model's tokenizer.json next to its config.json, or give rows of {\"input_ids\",\"labels\"}");
  if (row.kind == RowKind::messages) return add_messages(row, place);
  if (row.kind == RowKind::prompt || row.kind == RowKind::instruction) return add_prompt(row, place);
  if (row.kind == RowKind::labelled_pair) return add_pair(row, place);
  const int32_t label = row.kind == RowKind::labelled ? classes_.class_of(row, place) : 0;
  if (row.text.empty()) {
    ++counts_.empty_rows;
    return;
  }
  if (labels() != LabelKind::next_token) {
    add_whole(row, place);
    row.kind == RowKind::labelled ? writer_.append_class(ids_, label) : writer_.append(ids_, 0);
    return finish_row();
  }
  add_special(tokenizer_->pipeline().post_processor().prefix);
  add_part(row, row.text, place);
  end_text(place);
  add_eos(place);
  writer_.append(ids_, 0);
  finish_row();
}

// Which rows a model accepts: with a class, or with targets at positions.
void RowTokenizer::check_kind(const Row& row, const RowPlace& place) const {
  const bool labelled =
      row.kind == RowKind::labelled || row.kind == RowKind::labelled_pair || row.kind == RowKind::labelled_ids;
  const bool positions = row.kind == RowKind::text || row.kind == RowKind::ids;
  if (labels() == LabelKind::sequence_class ? labelled : !labelled && (positions || labels() == LabelKind::next_token))
    return;
  const std::string problem = fmt::format("a row of {{{}}}", row_kind_keys(row.kind));
  if (labels() == LabelKind::sequence_class)
    refuse_row(place, problem + ": the model classifies sequences", "give rows of {\"text\",\"label\"}");
  if (labels() == LabelKind::own_position)
    refuse_row(place, problem + ": the model predicts masked tokens", "give rows of {\"text\"}");
  refuse_row(place, problem + ": the model predicts the next token and has no classes",
             "use a ...ForSequenceClassification model; or remove the label to train on the text, or write it as a "
             "completion");
}

void RowTokenizer::require_mask(const RowPlace& place) {
  has_mask_ = has_mask_ || find_mask_token(*tokenizer_, tokenizer_folder_);
  if (!has_mask_)
    refuse_row(place, "texts are masked and the tokenizer has no mask token",
               "use the model's own tokenizer ([MASK] or <mask>), or give rows of {\"input_ids\",\"labels\"}");
}

// A text between the special tokens of the post-processor, cut to fit between them.
void RowTokenizer::add_whole(const Row& row, const RowPlace& place) {
  if (labels() == LabelKind::own_position) require_mask(place);
  const PostProcessor& around = tokenizer_->pipeline().post_processor();
  const auto special = static_cast<int64_t>(around.prefix.size() + around.suffix.size());
  if (special >= max_seq_length_)
    throw Error(
        ErrorKind::usage,
        fmt::format("--max-seq-length {} leaves no room for text besides {} special tokens", max_seq_length_, special),
        "give a longer one");
  most_ids_ = max_seq_length_ - static_cast<int64_t>(around.suffix.size());
  add_special(around.prefix);
  add_part(row, row.text, place);
  end_text(place);
  most_ids_ = max_seq_length_;
  add_special(around.suffix);
  flush_pieces(place);
}

// Two texts between the special tokens of the post-processor. If both fit nothing is cut; otherwise first the longer,
// down to half of the room, then both to half, the second with the odd token.
void RowTokenizer::add_pair(const Row& row, const RowPlace& place) {
  const std::optional<PairTemplate>& around = tokenizer_->pipeline().post_processor().pair;
  if (!around)
    refuse_row(place, "the tokenizer.json has no template of pairs that headroom knows",
               "join the texts in \"text\", or give rows of {\"input_ids\",\"label\"}");
  const int32_t label = classes_.class_of(row, place);
  if (row.text.empty() && row.text_pair.empty()) {
    ++counts_.empty_rows;
    return;
  }
  const auto specials = static_cast<int64_t>(around->prefix.size() + around->middle.size() + around->suffix.size());
  const int64_t room = max_seq_length_ - specials;
  if (room < 2)
    throw Error(ErrorKind::usage,
                fmt::format("--max-seq-length {} leaves no room for two texts besides {} special tokens",
                            max_seq_length_, specials),
                "give a longer one");
  add_part(row, row.text, place);
  end_text(place);
  first_.swap(ids_);
  ids_.clear();
  const int64_t first_tokens = std::exchange(row_tokens_, 0);
  add_part(row, row.text_pair, place);
  end_text(place);
  const int64_t second_tokens = row_tokens_;
  const auto [first, second] = lengths_within(first_tokens, second_tokens, room);
  first_.resize(static_cast<size_t>(first));
  ids_.resize(static_cast<size_t>(second));
  ids_.insert(ids_.begin(), around->middle.begin(), around->middle.end());
  ids_.insert(ids_.begin(), first_.begin(), first_.end());
  ids_.insert(ids_.begin(), around->prefix.begin(), around->prefix.end());
  ids_.insert(ids_.end(), around->suffix.begin(), around->suffix.end());
  for (const int32_t id : ids_) check_id(id, place);
  row_tokens_ = first_tokens + second_tokens + specials;
  writer_.append_class(ids_, label,
                       token_types_ < 2 ? static_cast<int64_t>(ids_.size()) : around->type_0(first, second));
  finish_row();
}

void RowTokenizer::add_prompt(const Row& row, const RowPlace& place) {
  const bool instruction = row.kind == RowKind::instruction;
  const RowPart& completion = instruction ? row.output : row.completion;
  if (completion.empty() && row.prompt.empty() && row.instruction.empty() && row.input.empty()) {
    ++counts_.empty_rows;
    return;
  }
  add_special(tokenizer_->pipeline().post_processor().prefix);
  if (instruction) {
    const AlpacaTemplate& form = row.input.empty() ? kAlpacaWithoutInput : kAlpacaWithInput;
    add_text(form.before_instruction, place);
    add_part(row, row.instruction, place);
    add_text(form.before_input, place);
    add_part(row, row.input, place);
    add_text(form.before_output, place);
  } else {
    add_part(row, row.prompt, place);
  }
  end_text(place);
  const auto ignored = static_cast<int64_t>(ids_.size());
  add_part(row, completion, place);
  end_text(place);
  add_eos(place);
  if (ids_.empty()) {
    ++counts_.empty_rows;
    return;
  }
  writer_.append(ids_, ignored);
  finish_row();
}

// Appends a JSON list's values to `into`, up to the longest row, and returns how many there are.
int64_t RowTokenizer::read_list(const Row& row, const RowPart& list, std::string_view name, bool may_ignore,
                                std::vector<int32_t>& into, const RowPlace& place) const {
  JsonScanner json(*row.bytes, list.at, list.at + list.bytes);
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
    refuse_row(
        place,
        fmt::format("{}[{}]: {} at byte {} of the file", name, count, problem.what, place.offset + problem.position),
        "give a list of integers");
  }
  return count;
}

void RowTokenizer::add_ids(const Row& row, const RowPlace& place) {
  row_tokens_ = read_list(row, row.ids, "input_ids", false, ids_, place);
  const int64_t label_count = read_list(row, row.labels, "labels", true, labels_, place);
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

void RowTokenizer::add_labelled_ids(const Row& row, const RowPlace& place) {
  const int32_t label = classes_.class_of(row, place);
  row_tokens_ = read_list(row, row.ids, "input_ids", false, ids_, place);
  if (ids_.empty()) {
    ++counts_.empty_rows;
    return;
  }
  writer_.append_class(ids_, label);
  finish_row();
}

// The number of the row's tokens that are in `text`, the beginning of its whole text. A token that crosses the end of
// `text` counts for the end of a range, but not for the beginning of one.
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
    size_t chunk = std::min(text.size(), chunk_bytes_);
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
  if (!chat_) chat_.emplace(tokenizer_folder_, *tokenizer_, chat_bytes_);
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
  counts_.lengths.add(row_tokens_);
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
  if (tokenizer_ == nullptr) refuse_unread_tokenizer(tokenizer_folder_);
  if (tokenizer_ == nullptr)
    throw Error(ErrorKind::usage, fmt::format("{} is text and the model has no tokenizer", place.file),
                "put the model's tokenizer.json next to its config.json");
  if (labels() == LabelKind::sequence_class)
    throw Error(ErrorKind::usage, fmt::format("{} is text without labels: the model classifies sequences", place.file),
                "give rows of {\"text\",\"label\"} or a .tsv file");
  if (labels() == LabelKind::own_position) require_mask(place);
  if (!in_stream_) add_special(tokenizer_->pipeline().post_processor().prefix);
  in_stream_ = true;
  for (; !chunk.empty(); chunk.remove_prefix(std::min(chunk.size(), chunk_bytes_))) {
    try {
      encoder_->feed(chunk.substr(0, chunk_bytes_), pieces_);
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
