#include "grammar/json_schema.h"

#include <gmock/gmock.h>

#include "text_of.h"

namespace headroom {
namespace {

using testing::HasSubstr;

TEST(JsonSchema, Types) {
  expect_texts(schema(R"({"type":"null"})"), {"null"}, {"nul", "\"null\"", ""});
  expect_texts(schema(R"({"type":"boolean"})"), {"true", "false"}, {"True", "0"});
  expect_texts(schema(R"({"type":["string","null"]})"), {"null", "\"a\""}, {"1", "true"});
  expect_texts(schema(R"({"type":"integer"})"), {"0", "-1", "123456789012345678"},
               {"-0", "01", "1.0", "1e3", "1234567890123456789", "+1"});
  expect_texts(schema(R"({"type":"number"})"), {"0", "-0.5", "1e9", "12.25E-3", "1E+10"},
               {"01", ".5", "1.", "1e", "1e100", "--1"});
  expect_texts(schema("true"), {"1", "\"x\"", "[1, {\"a\":null}]", "{}"}, {"", "x"});
  EXPECT_TRUE(schema("{}").notes.empty());
}

TEST(JsonSchema, Strings) {
  const Grammar any = schema(R"({"type":"string"})");
  expect_texts(any, {R"("")", R"("a b")", R"("é漢😀")", R"("\"\\\/\b\f\n\r\t")", R"("\u0041\ud83d\ude00\uE000")"},
               {"\"\n\"", "\"\t\"", R"("\x")", R"("\u12")", R"("\ud83d")", R"("\ude00")", "\"\xFF\"", "\"\xC3\"",
                "\"\xC0\x80\"", "\"\xED\xA0\x80\"", R"("a""b")"});
  expect_texts(schema(R"({"type":"string","minLength":2,"maxLength":3})"), {R"("ab")", R"("é漢")", R"("\n\u0041c")"},
               {R"("a")", R"("abcd")", R"("")"});
  expect_texts(schema(R"({"minLength":1})"), {R"("a")"}, {R"("")"});
}

TEST(JsonSchema, Patterns) {
  expect_texts(schema(R"({"type":"string","pattern":"^[a-z]+$"})"), {R"("abc")"}, {R"("")", R"("aB")"});
  expect_texts(schema(R"({"type":"string","pattern":"ab"})"), {R"("ab")", R"("xxabyy")", R"("x\naby")"},
               {R"("a")", R"("ba")"});
  expect_texts(schema(R"({"type":"string","pattern":"^a|b$"})"), {R"("axx")", R"("xxb")"}, {R"("xax")"});
  const Grammar quoted = schema(R"({"type":"string","pattern":"^[\"\\\\x\\n]$"})");
  expect_texts(quoted, {R"("\"")", R"("\\")", R"("x")", R"("\n")"}, {R"(""")", R"("n")", "\"\n\""});
}

TEST(JsonSchema, Formats) {
  expect_texts(schema(R"({"type":"string","format":"date"})"), {R"("2024-02-28")", R"("1999-12-31")"},
               {R"("2024-02-30")", R"("2024-13-01")", R"("2024-04-31")", R"("24-01-01")"});
  expect_texts(schema(R"({"type":"string","format":"date-time"})"),
               {R"("2024-02-28T23:59:59Z")", R"("2024-02-28T00:00:00.5+01:30")"},
               {R"("2024-02-28 23:59:59Z")", R"("2024-02-28T24:00:00Z")"});
  expect_texts(schema(R"({"type":"string","format":"uuid"})"), {R"("123e4567-e89b-12d3-a456-426614174000")"},
               {R"("123e4567")"});
  expect_texts(schema(R"({"type":"string","format":"ipv4"})"), {R"("127.0.0.255")"},
               {R"("127.0.0.256")", R"("1.2.3")"});
  expect_texts(schema(R"({"type":"string","format":"email"})"), {R"("a.b@c-d.org")"}, {R"("a@b")", R"("@b.org")"});
  const Grammar unknown = schema(R"({"type":"object","properties":{"u":{"type":"string","format":"uri"}}})");
  ASSERT_EQ(unknown.notes.size(), 1u);
  EXPECT_EQ(unknown.notes[0], "source: /properties/u: format \"uri\" is not enforced");
}

// Every integer around the bounds.
TEST(JsonSchema, IntegersBetweenBoundsAreExact) {
  const int64_t bounds[][2] = {{0, 0},  {3, 12}, {-12, -3},   {-5, 7},    {99, 1001},
                               {-1, 0}, {1, 1},  {-100, 100}, {395, 405}, {0, 999}};
  for (const auto& bound : bounds)
    for (const bool exclusive : {false, true}) {
      const std::string text =
          fmt::format(R"({{"type":"integer","{}":{},"{}":{}}})", exclusive ? "exclusiveMinimum" : "minimum", bound[0],
                      exclusive ? "exclusiveMaximum" : "maximum", bound[1]);
      if (exclusive && bound[1] - bound[0] < 2) {
        EXPECT_THAT(refusal([&] { schema(text); }), HasSubstr("no text matches")) << text;
        continue;
      }
      const Grammar grammar = schema(text);
      for (int64_t value = bound[0] - 1100; value <= bound[1] + 1100; ++value) {
        const bool inside = exclusive ? bound[0] < value && value < bound[1] : bound[0] <= value && value <= bound[1];
        ASSERT_EQ(has(grammar, std::to_string(value)), inside) << text << ' ' << value;
      }
    }
  expect_texts(schema(R"({"type":"integer","minimum":5})"), {"5", "10", "999999999999999999"}, {"4", "0", "-5", "05"});
  expect_texts(schema(R"({"type":"integer","maximum":-5})"), {"-5", "-10"}, {"-4", "0", "5"});
  expect_texts(schema(R"({"type":"integer","minimum":1.5,"maximum":3.5})"), {"2", "3"}, {"1", "4", "2.0"});
  expect_texts(schema(R"({"type":"integer","minimum":0,"exclusiveMinimum":true})"), {"1"}, {"0"});
}

TEST(JsonSchema, NumbersBetweenBoundsAreExact) {
  const double bounds[][2] = {{0, 1}, {-0.5, 0.25}, {1.25, 10.5}, {-2.75, -1.5}, {0, 0}};
  for (const auto& bound : bounds)
    for (const bool exclusive : {false, true}) {
      if (exclusive && bound[0] == bound[1]) continue;
      const Grammar grammar =
          schema(fmt::format(R"({{"type":"number","{}":{},"{}":{}}})", exclusive ? "exclusiveMinimum" : "minimum",
                             bound[0], exclusive ? "exclusiveMaximum" : "maximum", bound[1]));
      for (int eighths = -100; eighths <= 100; ++eighths) {
        const double value = eighths / 8.0;
        const bool inside = exclusive ? bound[0] < value && value < bound[1] : bound[0] <= value && value <= bound[1];
        ASSERT_EQ(has(grammar, fmt::format("{}", value)), inside) << value;
        if (value != 0) {
          ASSERT_EQ(has(grammar, fmt::format("{:.4f}", value)), inside) << value;
        }
      }
    }
  expect_texts(schema(R"({"type":"number","minimum":1e-3,"maximum":1e3})"),
               {"0.001", "0.0010", "1000", "1000.0", "17.25"}, {"0.0009", "1000.1", "1e2", "0"});
  EXPECT_THAT(refusal([] { schema(R"({"type":"number","minimum":1e300})"); }), HasSubstr("minimum is too large"));
}

TEST(JsonSchema, EnumAndConst) {
  const Grammar grammar = schema(R"({"enum":["a","ab","\"q\"",1,-2.5,null,true,[1,{"x":[]}],{}]})");
  expect_texts(grammar,
               {R"("a")", R"("ab")", R"("\"q\"")", "1", "-2.5", "null", "true", R"([1,{"x":[]}])",
                R"([ 1, { "x": [] } ])", "{}"},
               {R"("b")", "2", "false", "[1]", R"("abc")"});
  expect_texts(schema(R"({"const":"é"})"), {R"("é")"}, {R"("e")"});
  expect_texts(schema(R"({"type":"string","enum":["a",1]})"), {R"("a")"}, {"1"});
  EXPECT_THAT(refusal([] { schema(R"({"enum":[]})"); }), HasSubstr("no text matches"));
  EXPECT_THAT(refusal([] { schema(R"({"enum":["a"],"maxLength":3})"); }), HasSubstr("\"maxLength\" next to enum"));
}

TEST(JsonSchema, ObjectsKeepTheirOrder) {
  const Grammar grammar = schema(
      R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"null"},"c":{"type":"boolean"}},"required":["a"]})");
  expect_texts(grammar,
               {R"({"a":null})", R"({"b":1,"a":null})", R"({"b": 1, "a": null, "c": true})",
                R"({ "a":null, "c":true })", R"({"a":null,"c":true})"},
               {"{}", R"({"b":1})", R"({"a":null,"b":1})", R"({"a":null,"a":null})", R"({"a":null,"d":1})",
                R"({"b":1.5,"a":null})", R"({"a":null,})", R"({  "a":null})"});
}

TEST(JsonSchema, SpacesAreBounded) {
  const Grammar grammar = schema(R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}})");
  expect_texts(grammar, {"{}", "{ }", R"({"a":[1,2]})", R"({ "a": [ 1, 2 ] })", R"({"a":[ ]})"},
               {R"({  "a":[]})", R"({"a" :[]})", "{\n}", R"({"a":[1 ,2]})", " {}", "{} "});
}

TEST(JsonSchema, AdditionalProperties) {
  const Grammar typed =
      schema(R"({"type":"object","properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"integer"}})");
  expect_texts(typed, {"{}", R"({"ab":null})", R"({"ab":null,"x":1,"abc":2,"a":3,"":4,"é":5})", R"({"x":1})"},
               {R"({"ab":1})", R"({"x":1,"ab":null})", R"({"x":null})", R"({"\u0061b":1})"});
  expect_texts(schema(R"({"type":"object"})"), {"{}", R"({"x":[1,{"y":null}]})"}, {"[]"});
  expect_texts(schema(R"({"type":"object","additionalProperties":{"type":"integer"}})"), {"{}", R"({"a":1,"b":2})"},
               {R"({"a":null})"});
  expect_texts(schema(R"({"type":"object","additionalProperties":false})"), {"{}"}, {R"({"a":1})"});
  expect_texts(schema(R"({"type":"object","properties":{"a":false,"b":true}})"), {"{}", R"({"b":1})"}, {R"({"a":1})"});
  expect_texts(schema(R"({"type":"object","required":["k"]})"), {R"({"k":1})", R"({"k":1,"x":2})"},
               {"{}", R"({"x":2})"});
  EXPECT_THAT(refusal([] { schema(R"({"required":["k"],"properties":{"a":true},"additionalProperties":false})"); }),
              HasSubstr("\"k\" is required"));
}

TEST(JsonSchema, Arrays) {
  expect_texts(schema(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})"),
               {"[1,2]", "[ 1, 2, 3 ]"}, {"[]", "[1]", "[1,2,3,4]", "[1,]"});
  expect_texts(schema(R"({"type":"array","items":{"type":"null"},"minItems":2})"),
               {"[null,null]", "[null,null,null,null]"}, {"[]", "[null]"});
  expect_texts(schema(R"({"type":"array","maxItems":0})"), {"[]", "[ ]"}, {"[1]"});
  expect_texts(schema(R"({"type":"array","items":{"type":"null"}})"), {"[]", "[null]", "[null,null]"}, {"[1]"});
  expect_texts(schema(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"null"}],"items":false})"),
               {"[]", "[1]", "[1,null]"}, {"[null]", "[1,null,2]"});
  expect_texts(schema(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2})"),
               {"[1,null]", "[1,null,null]"}, {"[1]", "[1,2]"});
  expect_texts(schema(R"({"type":"array","items":[{"type":"integer"}],"additionalItems":false})"), {"[]", "[1]"},
               {"[1,1]"});
  EXPECT_THAT(refusal([] { schema(R"({"type":"array","minItems":3,"maxItems":2})"); }),
              HasSubstr("at least 3 elements has at most 2"));
}

TEST(JsonSchema, AnyOfAndOneOf) {
  expect_texts(schema(R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"), {"1", "null"}, {"true"});
  expect_texts(schema(R"({"oneOf":[{"const":1},{"const":2}]})"), {"1", "2"}, {"3"});
  const Grammar beside = schema(
      R"({"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},{"properties":{"k":{"maxLength":1}}}]})");
  expect_texts(beside, {R"({"k":"xyz","a":null})", R"({"k":"x"})"}, {R"({"k":"xyz"})", R"({"a":null})"});
}

TEST(JsonSchema, AllOfMerges) {
  expect_texts(schema(R"({"allOf":[{"type":"integer","minimum":3},{"minimum":5,"maximum":7}]})"), {"5", "7"},
               {"4", "8", "5.5"});
  expect_texts(
      schema(
          R"({"$defs":{"base":{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]}},"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"type":"integer"}},"required":["b"]}]})"),
      {R"({"a":null,"b":1})"}, {R"({"a":null})", R"({"b":1})"});
  expect_texts(schema(R"({"allOf":[{"type":["integer","null"]},{"type":["number","string"]}]})"), {"1"},
               {"null", "1.5", "\"\""});
  expect_texts(
      schema(
          R"({"allOf":[{"properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"a":{"minimum":2},"b":true}}]})"),
      {"{}", R"({"a":2})"}, {R"({"a":1})", R"({"b":1})"});
  EXPECT_THAT(refusal([] { schema(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})"); }),
              HasSubstr("\"pattern\" has two values"));
}

TEST(JsonSchema, ReferencesMayRecur) {
  const Grammar tree = schema(
      R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["v"]}}})");
  expect_texts(tree, {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"},
               {R"({"kids":[]})", R"({"v":1,"kids":[1]})"});
  const Grammar list =
      schema(R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})");
  expect_texts(list, {R"({"next":null})", R"({"next":{"next":{"next":null}}})"}, {"{}", R"({"next":1})"});
  expect_texts(schema(R"({"properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}}})"), {R"({"a":1,"b":2})"},
               {R"({"b":null})"});
  expect_texts(schema(R"({"$defs":{"a/b~c":{"type":"null"}},"$ref":"#/$defs/a~1b~0c"})"), {"null"}, {"1"});
  expect_texts(schema(R"({"$defs":{"s":{"type":"string","maxLength":3}},"$ref":"#/$defs/s","minLength":2})"),
               {R"("ab")"}, {R"("a")", R"("abcd")"});
}

TEST(JsonSchema, RefusesWithThePlace) {
  const auto message = [](const std::string& text) { return refusal([&] { schema(text); }); };
  EXPECT_THAT(message(R"({"properties":{"a":{"items":{"uniqueItems":true,"type":"array"}}}})"),
              HasSubstr("source: /properties/a/items: the keyword \"uniqueItems\" is not supported"));
  for (const char* keyword :
       {"not", "if", "patternProperties", "propertyNames", "contains", "dependentRequired", "unevaluatedProperties"})
    EXPECT_THAT(message(fmt::format(R"({{"type":"object","{}":{{}}}})", keyword)),
                HasSubstr(fmt::format("\"{}\" is not supported", keyword)));
  EXPECT_THAT(message(R"({"type":"integer","multipleOf":2})"), HasSubstr("multipleOf"));
  EXPECT_THAT(message(R"({"type":"object","minProperties":1})"), HasSubstr("minProperties"));
  EXPECT_THAT(message(R"({"type":"text"})"), HasSubstr("there is no type \"text\""));
  EXPECT_THAT(message(R"({"type":"string","minLength":-1})"), HasSubstr("minLength is not a whole number"));
  EXPECT_THAT(message(R"({"type":"string","minLength":3,"maxLength":2})"), HasSubstr("at least 3"));
  EXPECT_THAT(message(R"({"type":"string","pattern":"a(?!b)c"})"),
              HasSubstr("source: the whole schema/pattern: byte 3"));
  EXPECT_THAT(message(R"({"type":"string","pattern":"a","maxLength":3})"),
              HasSubstr("only one of pattern, format and lengths is supported"));
  EXPECT_THAT(message(R"({"$ref":"other.json"})"), HasSubstr("only references into the same schema"));
  EXPECT_THAT(message(R"({"$ref":"#/$defs/none"})"), HasSubstr("there is nothing at that place"));
  EXPECT_THAT(message(R"({"anyOf":[]})"), HasSubstr("anyOf is not a list of schemas"));
  EXPECT_THAT(message(R"({"properties":1})"), HasSubstr("properties is not an object"));
  EXPECT_THAT(message(R"({"properties":{"a":3}})"), HasSubstr("/properties/a: a schema is an object"));
  EXPECT_THAT(message("[]"), HasSubstr("a schema is an object"));
  EXPECT_THAT(refusal([] { schema("{"); }, ErrorKind::format), HasSubstr("malformed JSON"));
}

TEST(JsonSchema, HostileOnesAreRefused) {
  const auto message = [](const std::string& text) { return refusal([&] { schema(text); }); };
  EXPECT_THAT(message(R"({"$ref":"#"})"), HasSubstr("no text matches"));
  EXPECT_THAT(message(R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"),
              HasSubstr("no text matches"));
  EXPECT_THAT(message(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})"), HasSubstr("left recursion"));
  EXPECT_THAT(message(R"({"properties":{"x":{"$ref":"#"}},"required":["x"]})"), HasSubstr("none that ends"));
  EXPECT_THAT(message(R"({"allOf":[{"$ref":"#"},{"type":"object"}]})"), HasSubstr("lead through more than"));
  EXPECT_THAT(message(R"({"type":"array","maxItems":1000000})"), HasSubstr("more than 65536 states"));
  EXPECT_THAT(message(R"({"type":"string","minLength":1000000000})"), HasSubstr("more than 65536 states"));
  // Each level doubles the schemas, and each merge makes a new one.
  std::string doubling = R"({"$defs":{)";
  for (int i = 0; i < 30; ++i)
    doubling +=
        fmt::format(R"("a{}":{{"allOf":[{{"$ref":"#/$defs/a{}"}},{{"$ref":"#/$defs/a{}"}}]}},)", i, i + 1, i + 1);
  doubling += R"("a30":{"type":"null"}},"$ref":"#/$defs/a0","type":"null"})";
  EXPECT_THAT(message(doubling), testing::AnyOf(HasSubstr("join has more than"), HasSubstr("lead through")));
  EXPECT_THAT(
      message(
          R"({"$defs":{"a":{"type":"object","properties":{"p":{"$ref":"#/$defs/a","title":"t","maxProperties":5}}}},"$ref":"#/$defs/a"})"),
      testing::AnyOf(HasSubstr("join has more than"), HasSubstr("rules"), HasSubstr("named by more than")));
  EXPECT_THAT(refusal([] { schema(std::string(70, '[') + std::string(70, ']')); }, ErrorKind::format),
              HasSubstr("nested deeper"));
  EXPECT_THAT(message(fmt::format(R"({{"const":"{}"}})", std::string(300000, 'a'))),
              HasSubstr("more than 262144 bytes"));
}

TEST(JsonObject, IsAnyObjectOfBoundedDepth) {
  const Grammar grammar = grammar_of(GrammarSource::Kind::json_object, "");
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "{\"a\":";
    return text + "1" + std::string(static_cast<size_t>(depth), '}');
  };
  expect_texts(grammar, {"{}", R"({"a": [1, "x", {"b": false}], "c": -1.5e3})", nested(16)},
               {"[]", "1", "{\"a\"}", nested(17), "{}{}"});
}

}  // namespace
}  // namespace headroom
