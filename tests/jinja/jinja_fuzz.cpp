// Any template with any variables: an Error or a text within the limits. The input is a template, a zero byte, and
// JSON.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "jinja/problem.h"
#include "jinja/template.h"
#include "json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string source = text.substr(0, text.find('\0'));
  nlohmann::ordered_json variables;
  if (source.size() + 1 < size && size - source.size() < 2048)
    variables = nlohmann::ordered_json::parse(text.substr(source.size() + 1), nullptr, false);
  if (!variables.is_object())
    variables = {{"messages", {{{"role", "user"}, {"content", "a <b> \xc3\xa9"}}, {{"role", "assistant"}}}},
                 {"bos_token", "<s>"}};
  jinja::Limits limits;
  limits.template_bytes = 1 << 14;
  limits.steps = 20'000;
  limits.text_bytes = 1 << 15;
  limits.live_bytes = 1 << 18;
  try {
    jinja::Budget budget(limits);
    const jinja::Value values = jinja::value_of(budget, variables);
    const jinja::Template made = jinja::Template::parse(source, "fuzz", limits);
    const jinja::Rendered rendered = made.render(values.dict(), jinja::golden_time(), budget);
    if (rendered.text.size() > static_cast<size_t>(limits.text_bytes)) abort();
    size_t end = 0;
    for (const auto& [first, last] : rendered.generations) {
      if (first > last || last > rendered.text.size()) abort();
      end = std::max(end, last);
    }
  } catch (const Error&) {
  } catch (const jinja::Problem&) {  // in the variables
  } catch (const nlohmann::json::exception&) {
  }
  return 0;
}
