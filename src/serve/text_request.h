// A client's request in any of the APIs, checked but not yet encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/ordered_json.h"
#include "generate/sampler.h"
#include "grammar/grammar.h"
#include "serve/json_fields.h"

namespace headroom {

// /v1/completions, /v1/chat/completions, /v1/responses (OpenAI), /v1/messages (Anthropic).
enum class TextApi : uint8_t { completion, chat, response, message };

inline constexpr int64_t kMostTokens = int64_t{1} << 31;  // the most tokens that a request may ask for

// A text, or token ids if `is_ids`.
struct PromptInput {
  std::string text;
  std::vector<int32_t> ids;
  bool is_ids = false;
};

// Whether the answer may or must be a call of a tool.
struct ToolUse {
  enum class Mode : uint8_t { none, automatic, required, named };
  Mode mode = Mode::none;
  std::string name;  // for Mode::named

  // Whether the answer must be a call.
  bool forced() const { return mode == Mode::required || mode == Mode::named; }
};

// How a chat is rendered as a prompt (PromptForm).
struct ChatForm {
  bool opens_answer = true;  // add_generation_prompt
  bool goes_on = false;      // continue_final_message
  OrderedJson arguments;     // chat_template_kwargs; null: none
};

struct TextRequest {
  TextApi api = TextApi::completion;
  std::string model;                 // empty: not given
  std::vector<PromptInput> prompts;  // for a completion
  OrderedJson messages, tools;       // for the other APIs, in the form of a chat; null: no tools
  ChatForm form;
  std::string prefill;   // start of the answer, given by the client; not part of the answer's text
  std::string settings;  // for a response: the JSON object of fields that the answer repeats
  ToolUse tool_use;
  int64_t n = 1;
  std::optional<int64_t> max_tokens;
  int64_t min_tokens = 0;
  bool ignores_end = false;       // the model's own end tokens do not end the text
  std::vector<int32_t> stop_ids;  // further tokens that do
  SamplingOptions sampling;       // without its seed
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  std::optional<GrammarSource> grammar;
  bool stream = false, include_usage = false, echo = false, return_ids = false;
  int64_t best = -1;           // log-probabilities of the token and of this many others; -1: none
  bool keeps_special = false;  // special tokens are kept in the text

  int64_t choices() const { return n * (api == TextApi::completion ? static_cast<int64_t>(prompts.size()) : 1); }
  // Whether the answer's whole text is kept until its end.
  bool keeps_text() const { return !stream || api == TextApi::response; }
  // Frees what the encoded prompts and grammars contain by now; keeps the names of tools.
  void drop_sources();
};

// The messages of a chat as templates expect them: each with one text and with objects as arguments of calls. Throws
// ApiError(400).
OrderedJson read_messages(const JsonFields& fields);

// From add_generation_prompt, continue_final_message and chat_template_kwargs. Throws ApiError(400).
ChatForm read_chat_form(const JsonFields& fields);

// A member that is a text, token ids, or a list of at most `most` of these. Throws ApiError(400).
std::vector<PromptInput> read_prompts(const JsonFields& fields, const char* name, int64_t vocab, int64_t most);

// Reads the parsed body of a completion or a chat. `vocab`: size of the model's logits. Throws ApiError(400).
TextRequest read_text_request(TextApi api, const OrderedJson& body, int64_t vocab);

}  // namespace headroom
