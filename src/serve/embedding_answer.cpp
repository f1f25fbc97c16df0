#include "serve/embedding_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "formats/json.h"
#include "serve/api_error.h"

namespace headroom {
namespace {

static_assert(std::endian::native == std::endian::little, "base64 of embeddings is of little-endian numbers");

constexpr int64_t kNumberBytes = 16;  // "-1.17549435e-38,"

void append_base64(std::string& out, std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) three = three << 8 | (i < count ? std::to_integer<uint32_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) out += i <= count ? kDigits[three >> (18 - 6 * i) & 63] : '=';
  }
}

}  // namespace

std::vector<float> embedding_of(std::span<const float> state, int64_t dimensions) {
  std::vector<float> out(state.begin(), state.begin() + dimensions);
  double squares = 0;
  for (const float number : out) squares += static_cast<double>(number) * static_cast<double>(number);
  if (!std::isfinite(squares))
    throw Error(ErrorKind::run, "the model's hidden state is not finite", "serve it in --precision 32-true");
  const double length = std::sqrt(squares);
  if (length > 0)
    for (float& number : out) number = static_cast<float>(number / length);
  return out;
}

int64_t embedding_text_bytes(int64_t dimensions, bool base64) {
  return base64 ? (4 * dimensions + 2) / 3 * 4 + 2 : kNumberBytes * dimensions + 2;
}

std::string embedding_text(std::span<const float> embedding, bool base64) {
  std::string out;
  out.reserve(static_cast<size_t>(embedding_text_bytes(static_cast<int64_t>(embedding.size()), base64)));
  if (base64) {
    out += '"';
    append_base64(out, std::as_bytes(embedding));
    return out + '"';
  }
  out += '[';
  for (const float number : embedding) fmt::format_to(std::back_inserter(out), "{:#},", number);
  out.back() = ']';
  return out;
}

class EmbeddingAnswer::Input final : public SequenceListener {
 public:
  Input(EmbeddingAnswer& answer, size_t index) : answer_(answer), index_(index) {}

  bool on_token(const SequenceToken&) override { return false; }
  void on_embedding(std::span<const float> state) override {
    const std::vector<float> embedding = embedding_of(state, answer_.request_.dimensions);
    std::copy(embedding.begin(), embedding.end(),
              answer_.embeddings_.begin() + static_cast<int64_t>(index_) * answer_.request_.dimensions);
  }
  void on_end(SequenceEnd end, int64_t, int64_t, const std::string& error) override { answer_.input_ended(end, error); }

 private:
  EmbeddingAnswer& answer_;
  const size_t index_;
};

EmbeddingAnswer::EmbeddingAnswer(std::shared_ptr<HttpExchange> exchange, EmbeddingRequest request,
                                 std::vector<std::vector<int32_t>> prompts, Pooling pooling, std::shared_ptr<void> held)
    : exchange_(std::move(exchange)),
      request_(std::move(request)),
      prompts_(std::move(prompts)),
      pooling_(pooling),
      held_(std::move(held)),
      embeddings_(prompts_.size() * static_cast<size_t>(request_.dimensions)) {
  for (const auto& prompt : prompts_) tokens_ += static_cast<int64_t>(prompt.size());
}

EmbeddingAnswer::~EmbeddingAnswer() = default;

int64_t EmbeddingAnswer::longest_prompt() const {
  size_t longest = 0;
  for (const auto& prompt : prompts_) longest = std::max(longest, prompt.size());
  return static_cast<int64_t>(longest);
}

std::vector<SequenceRequest> EmbeddingAnswer::next(uint64_t client, std::function<void()> more) {
  more_ = std::move(more);
  inputs_.clear();
  std::vector<SequenceRequest> out;
  for (; given_ < prompts_.size() && out.size() < kAtOnce; ++given_) {
    inputs_.push_back(std::make_unique<Input>(*this, given_));
    SequenceRequest& sequence = out.emplace_back();
    sequence.prompt = std::move(prompts_[given_]);
    sequence.max_tokens = 0;
    sequence.pooling = pooling_;
    sequence.client = client;
    sequence.listener = std::shared_ptr<SequenceListener>(shared_from_this(), inputs_.back().get());
  }
  running_ = out.size();
  return out;
}

void EmbeddingAnswer::refused(int status, const std::string& why) {
  held_.reset();
  refuse(*exchange_, ApiError(status, why));
}

void EmbeddingAnswer::input_ended(SequenceEnd end, const std::string& error) {
  --running_;
  cancelled_ |= end == SequenceEnd::cancelled;
  if (end == SequenceEnd::failed && error_.empty()) error_ = error;
  if (running_ > 0) return;
  if (cancelled_) return;
  if (!error_.empty()) return refused(500, error_);
  given_ < prompts_.size() ? more_() : finish();
}

void EmbeddingAnswer::finish() {
  const auto width = static_cast<size_t>(request_.dimensions);
  std::string body;
  body.reserve(prompts_.size() * static_cast<size_t>(64 + embedding_text_bytes(request_.dimensions, request_.base64)) +
               256 + 6 * request_.model.size());
  body += "{\"object\":\"list\",\"data\":[";
  for (size_t i = 0; i < prompts_.size(); ++i)
    fmt::format_to(std::back_inserter(body), "{}{{\"object\":\"embedding\",\"index\":{},\"embedding\":{}}}",
                   i == 0 ? "" : ",", i,
                   embedding_text(std::span(embeddings_).subspan(i * width, width), request_.base64));
  fmt::format_to(std::back_inserter(body), "],\"model\":{},\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{}}}}}",
                 Json(request_.model).dump(), tokens_, tokens_);
  held_.reset();
  exchange_->send(200, "application/json", std::move(body));
}

}  // namespace headroom
