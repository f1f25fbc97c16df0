// Arbitrary bytes as the body of a completion or a chat: read or refused, with its grammar compiled within its limits.
// Only strings of the body may be long values. The first byte selects the API.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/call_finder.h"
#include "serve/text_encoder.h"
#include "serve/tool_calls.h"

namespace {

// The body as an answer that comes in pieces of this many bytes.
std::string said(const headroom::OrderedJson& tools, const std::string& text, size_t piece) {
  headroom::CallFinder finder(tools, "call");
  std::string out;
  const auto add = [&](const std::vector<headroom::FoundPart>& parts) {
    for (const headroom::FoundPart& part : parts)
      out += part.call ? part.call->id + part.call->name + part.call->arguments : part.text;
  };
  for (size_t at = 0; at < text.size(); at += piece) add(finder.push(text.substr(at, piece)));
  add(finder.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  if (size == 0) return 0;
  constexpr int64_t kValues = 4096, kVocab = 512;
  static const EncoderLimits limits = EncoderLimits::of(512);
  const TextApi api = data[0] % 2 == 0 ? TextApi::completion : TextApi::chat;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const TextRequest request = read_text_request(api, parse_body(body, kValues), kVocab);
    if (request.n < 1 || request.choices() < 1) __builtin_trap();
    if (request.grammar) compile_grammar(*request.grammar, limits.grammar);
    std::string content;
    if (!request.tools.is_null()) written_calls(request.tools, body, "call", content);
    if (request.tool_use.forced()) GrowingCall(request.tool_use, "call").push(body);
    for (const OrderedJson& message : request.tools.is_null() ? OrderedJson() : request.messages) {
      const OrderedJson content = message.is_object() ? message.value("content", OrderedJson()) : OrderedJson();
      const std::string text = content.is_string() ? content.get<std::string>() : body;
      if (said(request.tools, text, 1) != said(request.tools, text, text.size() + 1)) __builtin_trap();
    }
    if (content.size() > body.size()) __builtin_trap();
  } catch (const ApiError&) {
  } catch (const Error&) {
  }
  return 0;
}
