#include "serve/text_request.h"

#include <fmt/format.h>

#include <charconv>

#include "serve/api_error.h"
#include "serve/chat_body.h"
#include "serve/json_fields.h"
#include "serve/response_format.h"
#include "serve/tool_calls.h"

namespace headroom {
namespace {

constexpr int64_t kMostChoices = 128;  // n times prompts
constexpr int64_t kMostLogprobs = 20;
constexpr size_t kMostStops = 16;

PromptInput ids_prompt(const JsonFields& fields, const char* name, const OrderedJson& list, int64_t vocab) {
  if (list.empty()) fields.refuse(name, "is an empty list of token ids");
  PromptInput prompt;
  prompt.is_ids = true;
  for (const OrderedJson& id : list) {
    if (!id.is_number_integer()) fields.refuse(name, "must be a text, token ids, or a list of these");
    if (id < 0 || id >= vocab)
      fields.refuse(name, fmt::format("has token id {}; the vocabulary has {}", id.dump(), vocab));
    prompt.ids.push_back(id.get<int32_t>());
  }
  return prompt;
}

PromptInput text_prompt(const OrderedJson& text) {
  PromptInput prompt;
  prompt.text = text.get<std::string>();
  return prompt;
}

std::vector<std::string> read_stops(const JsonFields& fields) {
  const OrderedJson* stop = fields.find("stop");
  if (!stop) return {};
  std::vector<std::string> stops;
  const auto add = [&](const OrderedJson& text) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty())
      fields.refuse("stop", "must be a text that is not empty, or a list of such texts");
    stops.push_back(text.get<std::string>());
  };
  if (stop->is_array())
    for (const OrderedJson& text : *stop) add(text);
  else
    add(*stop);
  if (stops.size() > kMostStops) fields.refuse("stop", fmt::format("has more than {} texts", kMostStops));
  return stops;
}

// Tokens that end the text: those asked for, the model's own unless ignored, and the earliest position.
void read_ends(const JsonFields& fields, int64_t vocab, TextRequest& out) {
  out.stops = read_stops(fields);
  out.ignores_end = fields.flag("ignore_eos").value_or(false);
  out.min_tokens = fields.integer("min_tokens", 0, kMostTokens).value_or(0);
  const OrderedJson* ids = fields.array("stop_token_ids");
  if (!ids) return;
  if (ids->size() > kMostStops) fields.refuse("stop_token_ids", fmt::format("has more than {} ids", kMostStops));
  for (const OrderedJson& id : *ids) {
    if (!id.is_number_integer() || id < 0 || id >= vocab)
      fields.refuse("stop_token_ids", fmt::format("must be token ids from 0 to {}", vocab - 1));
    out.stop_ids.push_back(id.get<int32_t>());
  }
}

void read_bias(const JsonFields& fields, int64_t vocab, SamplingOptions& sampling) {
  const OrderedJson* bias = fields.object("logit_bias");
  if (!bias) return;
  for (const auto& [key, value] : bias->items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocab)
      fields.refuse("logit_bias",
                    fmt::format("names {}; token ids go from 0 to {}", OrderedJson(key).dump(), vocab - 1));
    if (!value.is_number() || !(value >= -100 && value <= 100))
      fields.refuse("logit_bias", fmt::format("of {} must be a number from -100 to 100", key));
    sampling.logit_bias.emplace_back(static_cast<int32_t>(id), value.get<float>());
  }
}

SamplingOptions read_sampling(const JsonFields& fields, int64_t vocab) {
  SamplingOptions sampling;
  sampling.temperature = fields.number("temperature", 0, 100).value_or(1);
  sampling.top_p = fields.number("top_p", 0, 1).value_or(1);
  if (sampling.top_p == 0) fields.refuse("top_p", "is 0; it must be above 0");
  sampling.top_k = std::max<int64_t>(0, fields.integer("top_k", -1, kMostTokens).value_or(0));
  sampling.min_p = fields.number("min_p", 0, 1).value_or(0);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  sampling.repetition_penalty = fields.number("repetition_penalty", 0.01, 100).value_or(1);
  read_bias(fields, vocab, sampling);
  return sampling;
}

void read_stream(const JsonFields& fields, TextRequest& out) {
  out.stream = fields.flag("stream").value_or(false);
  if (const OrderedJson* options = fields.object("stream_options")) {
    if (!out.stream) fields.refuse("stream_options", "needs stream: true");
    out.include_usage = JsonFields(*options, "stream_options.").flag("include_usage").value_or(false);
  }
}

void check_message(const OrderedJson& message, size_t at) {
  const std::string where = fmt::format("messages[{}].", at);
  if (!message.is_object()) throw ApiError(400, fmt::format("messages[{}] must be an object", at), "messages");
  const JsonFields fields(message, where);
  if (!fields.text("role")) fields.refuse("role", "is missing");
  const OrderedJson* content = fields.find("content");
  if (!content && !fields.find("tool_calls")) fields.refuse("content", "is missing");
  if (!content || content->is_string()) return;
  if (!content->is_array()) fields.refuse("content", "must be a text or a list of parts");
  for (const OrderedJson& part : *content)
    if (!part.is_object() || part.value("type", OrderedJson()) != "text" ||
        !part.value("text", OrderedJson()).is_string())
      fields.refuse("content", "has a part that is not {\"type\":\"text\",\"text\":\"...\"}: this model reads text");
}

// Joins parts to one text, since templates of text models expect that, and parses a call's arguments into objects.
// Templates know OpenAI's developer as system; Qwen's would leave its messages out.
OrderedJson plain_message(OrderedJson message) {
  if (message["role"] == "developer") message["role"] = "system";
  if (const auto content = message.find("content"); content != message.end() && content->is_array())
    *content = joined_parts(*content);
  if (const auto calls = message.find("tool_calls"); calls != message.end() && calls->is_array())
    for (OrderedJson& call : *calls)
      if (call.is_object() && call.value("function", OrderedJson()).is_object()) {
        if (!call["function"].value("arguments", OrderedJson()).is_string()) continue;
        OrderedJson& arguments = call["function"]["arguments"];
        const OrderedJson parsed = OrderedJson::parse(arguments.get_ref<const std::string&>(), nullptr, false);
        if (parsed.is_object()) arguments = parsed;
      }
  return message;
}

void read_chat(const JsonFields& fields, TextRequest& out) {
  out.messages = read_messages(fields);
  out.form = read_chat_form(fields);
  read_tools(fields, out);
  const bool logprobs = fields.flag("logprobs").value_or(false);
  const std::optional<int64_t> top = fields.integer("top_logprobs", 0, kMostLogprobs);
  if (top && !logprobs) fields.refuse("top_logprobs", "needs logprobs: true");
  if (logprobs) out.best = top.value_or(0);
  if (const std::optional<int64_t> most = fields.integer("max_completion_tokens", 1, kMostTokens))
    out.max_tokens = most;
}

void read_completion(const JsonFields& fields, int64_t vocab, TextRequest& out) {
  out.prompts = read_prompts(fields, "prompt", vocab, kMostChoices);
  out.echo = fields.flag("echo").value_or(false);
  if (const std::optional<int64_t> best = fields.integer("logprobs", 0, kMostLogprobs)) out.best = *best;
  if (fields.text("suffix").value_or("") != "") fields.refuse("suffix", "is not supported");
  if (fields.integer("best_of", 1, kMostChoices).value_or(out.n) != out.n)
    fields.refuse("best_of", "differs from n, which is not supported");
  if (!out.max_tokens) out.max_tokens = 16;
}

}  // namespace

OrderedJson read_messages(const JsonFields& fields) {
  const OrderedJson* given = fields.array("messages");
  if (!given || given->empty()) fields.refuse("messages", "is missing or empty");
  OrderedJson messages = OrderedJson::array();
  for (size_t i = 0; i < given->size(); ++i) {
    check_message((*given)[i], i);
    messages.push_back(plain_message((*given)[i]));
  }
  return messages;
}

ChatForm read_chat_form(const JsonFields& fields) {
  ChatForm form;
  form.goes_on = fields.flag("continue_final_message").value_or(false);
  const std::optional<bool> opens = fields.flag("add_generation_prompt");
  if (form.goes_on && opens.value_or(false))
    fields.refuse("continue_final_message", "cannot be combined with add_generation_prompt: true");
  form.opens_answer = opens.value_or(!form.goes_on);
  if (const OrderedJson* arguments = fields.object("chat_template_kwargs")) form.arguments = *arguments;
  return form;
}

std::vector<PromptInput> read_prompts(const JsonFields& fields, const char* name, int64_t vocab, int64_t most) {
  const OrderedJson* prompt = fields.find(name);
  if (!prompt) fields.refuse(name, "is missing");
  if (prompt->is_string()) return {text_prompt(*prompt)};
  if (!prompt->is_array() || prompt->empty()) fields.refuse(name, "must be a text, token ids, or a list of these");
  const OrderedJson& first = prompt->front();
  if (!first.is_string() && !first.is_array()) return {ids_prompt(fields, name, *prompt, vocab)};
  std::vector<PromptInput> prompts;
  for (const OrderedJson& item : *prompt) {
    if (item.type() != first.type()) fields.refuse(name, "mixes texts and token ids");
    prompts.push_back(item.is_string() ? text_prompt(item) : ids_prompt(fields, name, item, vocab));
    if (static_cast<int64_t>(prompts.size()) > most) fields.refuse(name, fmt::format("has more than {} entries", most));
  }
  return prompts;
}

TextRequest read_text_request(TextApi api, const OrderedJson& body, int64_t vocab) {
  const JsonFields fields(body);
  TextRequest out;
  out.api = api;
  out.model = fields.text("model").value_or("");
  out.n = fields.integer("n", 1, kMostChoices).value_or(1);
  const bool scores = api == TextApi::completion && fields.flag("echo").value_or(false);
  out.max_tokens = fields.integer("max_tokens", scores ? 0 : 1, kMostTokens);
  out.sampling = read_sampling(fields, vocab);
  if (const std::optional<int64_t> seed = fields.integer("seed", INT64_MIN, INT64_MAX))
    out.seed = static_cast<uint64_t>(*seed);
  read_ends(fields, vocab, out);
  read_stream(fields, out);
  out.return_ids = fields.flag("return_token_ids").value_or(false);
  out.keeps_special = !fields.flag("skip_special_tokens").value_or(true);
  out.grammar = read_response_format(fields);
  if (api == TextApi::chat)
    read_chat(fields, out);
  else
    read_completion(fields, vocab, out);
  if (out.max_tokens && out.min_tokens > *out.max_tokens)
    fields.refuse("min_tokens", fmt::format("is {}, above max_tokens {}", out.min_tokens, *out.max_tokens));
  if (out.choices() > kMostChoices)
    throw ApiError(400, fmt::format("{} choices were requested; the most is {}", out.choices(), kMostChoices), "n");
  return out;
}

void TextRequest::drop_sources() {
  for (PromptInput& prompt : prompts) prompt = {};
  messages = nullptr;
  grammar.reset();
  if (tools.is_null()) return;
  OrderedJson names = OrderedJson::array();
  for (const OrderedJson& tool : tools) names.push_back({{"function", {{"name", tool["function"]["name"]}}}});
  tools = std::move(names);
}

}  // namespace headroom
