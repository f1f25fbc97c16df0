// Templates outside the subset are refused with name and line; what takes too long or too much memory is stopped.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "jinja/template.h"
#include "json_value.h"

namespace headroom::jinja {
namespace {

Limits small_limits() {
  Limits limits;
  limits.steps = 200'000;
  limits.text_bytes = 1 << 16;
  limits.live_bytes = 1 << 20;
  return limits;
}

std::string render(const std::string& text, const std::string& variables = "{}") {
  Budget budget{small_limits()};
  const Value values = value_of(budget, nlohmann::ordered_json::parse(variables));
  return Template::parse(text, "chat template", budget.limits()).render(values.dict(), golden_time(), budget).text;
}

// The message of the error, followed by its remedy.
std::string error_of(const std::string& text) {
  try {
    return "rendered: " + render(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::format);
    EXPECT_FALSE(e.remedy().empty());
    return e.what();
  }
}

TEST(Subset, RefusesByNameAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% include 'x' %}", "chat template:1: 'the tag include' is not supported"},
      {"\n\n{% block a %}{% endblock %}", "chat template:3: 'the tag block' is not supported"},
      {"{% call x() %}{% endcall %}", "chat template:1: 'the tag call' is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "chat template:1: 'a recursive loop' is not supported"},
      {"{{ 1 }}\n{{ x | xmlattr }}", "chat template:2: 'the filter xmlattr' is not supported"},
      {"{{ x is filter }}", "chat template:1: 'the test filter' is not supported"},
      {"{{ 'a'.format(1) }}", "chat template:1: 'the method 'format' of a str' is not supported"},
      {"{{ '%s' % 1 }}", "chat template:1: ''%' with a text' is not supported"},
      {"{{ f(*x) }}", "chat template:1: '* before an argument' is not supported"},
      {"{{ cycler(1) }}", "chat template:1: 'cycler' is not supported"},
      {"{% macro m() %}{{ caller() }}{% endmacro %}", "chat template:1: 'caller' is not supported"},
      {"{{ [1] | map('urlize') | list }}", "chat template:1: 'the filter urlize' is not supported"},
      {"{{ namespace() }}", "chat template:1: 'printing a Namespace' is not supported"},
      {"{{ 9223372036854775807 + 1 }}", "chat template:1: 'an integer beyond 64 bits' is not supported"},
      {"{{ strftime_now('%Z') }}", "chat template:1: 'strftime_now(\"%Z\")' is not supported"},
      {"{% set x %}{% generation %}{% endgeneration %}{% endset %}",
       "chat template:1: 'generation inside a macro or a set block' is not supported"},
      {"{{ größe }}", "chat template:1: 'a name beyond ASCII' is not supported"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

TEST(Subset, SaysWhatIsNoJinja) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% if x %}", "chat template:1: the template ends where 'endif' was expected"},
      {"\n{{ x ", "chat template:2: the template ends where '}}' was expected"},
      {"{{ (1 }}", "chat template:1: an unexpected '}'"},
      {"{% endif %}", "chat template:1: the unexpected tag 'endif'"},
      {"{% break %}", "chat template:1: 'break' outside a loop"},
      {"{{ 'abc }}", "chat template:1: a text that does not end"},
      {"{# abc", "chat template:1: a comment that does not end"},
      {"{% raw %}", "chat template:1: 'raw' without 'endraw'"},
      {"{{ }}", "chat template:1: the tag ends where a value was expected"},
      {"{{ a ! b }}", "chat template:1: the unexpected character '!'"},
      {"{% set 5 = 1 %}", "chat template:1: '5' where the name of a variable was expected"},
      {"{{ x\n.y\n.z }}", "chat template:2: 'x' is undefined"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

TEST(Limits, StopWhatGrowsWithoutBound) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "more than 200000 steps"},
      {"{{ 'x' * 1000000 }}", "a text of more than 65536 bytes"},
      {"{{ 'x' * 9000000000000000000 }}", "a text of more than 65536 bytes"},
      {"{{ [1] * 9000000000000000000 }}", "more than 200000 steps"},
      {"{% for a in range(9999) %}{{ 'xxxxxxxxxxxxxxxx' }}{% endfor %}", "a text of more than 65536 bytes"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than 400 levels"},
      {"{% set ns = namespace(l=[]) %}{% for a in range(999) %}{% set ns.l = [ns.l] %}{% endfor %}",
       "values nested deeper than 64 levels"},
      {"{% set ns = namespace(l=[], t='x' * 60000) %}{% for a in range(999) %}{% set ns.l = ns.l + [ns.t ~ a] %}"
       "{% endfor %}",
       "values of more than 1048576 bytes"},
      {"{% set ns = namespace(t='x') %}{% for a in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
       "a text of more than 65536 bytes"},
      {"{{ range(200000) | list }}", "a range of more than 100000 items"},
      {"{{ ('a' * 60000).replace('a', 'bbbbbbbb') }}", "a text of more than 65536 bytes"},
      {"{{ ('a' * 30000).rfind('a' * 20000 ~ 'b') }}", "more than 200000 steps"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), "chat template:1: " + message) << text;
  const std::string deep = "{{ " + std::string(500, '(') + "1" + std::string(500, ')') + " }}";
  EXPECT_EQ(error_of(deep), "chat template:1: expressions nested deeper than 80 levels");
  std::string sum = "{{ 1";
  for (int i = 0; i < 500; ++i) sum += " + 1";
  EXPECT_EQ(error_of(sum + " }}"), "chat template:1: an expression of more than 200 levels");
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += "{% if 1 %}";
  EXPECT_EQ(error_of(blocks), "chat template:1: blocks nested deeper than 60 levels");
  EXPECT_EQ(error_of(std::string(300 << 10, 'x')),
            "chat template: a template of 307200 bytes, at most 262144 are supported");
}

TEST(Limits, CyclesAndEscapesOfValuesAreFreed) {
  EXPECT_EQ(
      render("{% set ns = namespace() %}{% set ns.self = ns %}{% set ns.l = [ns, [ns]] %}{{ ns.self.l | length }}"),
      "2");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for x in [1, 2] %}{% set ns.loop = loop %}{% set y = x %}"
                   "{% macro m() %}{{ y }}{{ x }}{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}"
                   "{{ ns.loop.index }}{{ ns.loop.last }}"),
            "222True");
}

TEST(Template, KnowsItsMarks) {
  EXPECT_FALSE(Template::parse("{{ 'generation' }}", "t").marks_generations());
  EXPECT_TRUE(
      Template::parse("{% for x in y %}{% if x %}{% generation %}{% endgeneration %}{% endif %}{% endfor %}", "t")
          .marks_generations());
}

}  // namespace
}  // namespace headroom::jinja
