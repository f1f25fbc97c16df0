// Pickles of all protocols become plain values; everything else is refused by name, and nothing is ever executed.
#include "formats/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "expect_error.h"

namespace headroom {
namespace {

using namespace std::string_literals;

std::string unhex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

void expect_refused(const std::string& pickle, const std::string& part) {
  expect_error(ErrorKind::format, part, [&] { read_pickle(pickle, "hostile.pickle"); });
}

PickleValue at(const PickleDocument& document, PickleValue dict, std::string_view key) {
  const auto name = document.text_value(key);
  EXPECT_TRUE(name.has_value()) << key;
  const auto found = name ? document.find(dict, *name) : std::nullopt;
  EXPECT_TRUE(found.has_value()) << key;
  return found.value_or(PickleValue());
}

std::vector<PickleValue> members(const PickleDocument& document, PickleValue value) {
  std::vector<PickleValue> out;
  for (auto cursor = document.members(value); !cursor.done(); cursor.next()) out.push_back(cursor.value());
  return out;
}

struct Written {
  int protocol;
  const char* hex;
};

// pickle.dumps of {'none': None, 'yes': True, 'no': False, 'integers': [0, -1, 255, 65536, -2**31, 2**40, 2**62,
// -2**63, 2**63], 'real': 1.5, 'text': 'é\n\\', 'bytes': b'\x00\xff', 'tuple': (1, 2, 3, 4), 'empty': [[], {}, ()],
// 'set': {7}} by CPython 3.11.
constexpr Written kWritten[] = {
    {0,
     "286470300a566e6f6e650a70310a4e73567965730a70320a4930310a73566e6f0a70330a4930300a7356696e7465676572730a70340a286c7"
     "0350a49300a61492d310a61493235350a614936353533360a61492d323134373438333634380a614c313039393531313632373737364c0a61"
     "4c343631313638363031383432373338373930344c0a614c2d393232333337323033363835343737353830384c0a614c39323233333732303"
     "3363835343737353830384c0a6173567265616c0a70360a46312e350a7356746578740a70370a56e95c75303030615c75303035630a70380a"
     "735662797465730a70390a635f636f646563730a656e636f64650a7031300a28565c7530303030ff0a7031310a566c6174696e310a7031320"
     "a747031330a527031340a73567475706c650a7031350a2849310a49320a49330a49340a747031360a7356656d7074790a7031370a286c7031"
     "380a286c7031390a6128647032300a6128746173567365740a7032310a635f5f6275696c74696e5f5f0a7365740a7032320a28286c7032330"
     "a49370a61747032340a527032350a732e"},
    {1,
     "7d71002858040000006e6f6e6571014e580300000079657371024930310a58020000006e6f71034930300a5808000000696e7465676572737"
     "1045d7105284b004affffffff4bff4a000001004a000000804c313039393531313632373737364c0a4c343631313638363031383432373338"
     "373930344c0a4c2d393232333337323033363835343737353830384c0a4c393232333337323033363835343737353830384c0a65580400000"
     "07265616c7106473ff800000000000058040000007465787471075804000000c3a90a5c7108580500000062797465737109635f636f646563"
     "730a656e636f64650a710a28580300000000c3bf710b58060000006c6174696e31710c74710d52710e58050000007475706c65710f284b014"
     "b024b034b047471105805000000656d70747971115d7112285d71137d7114296558030000007365747115635f5f6275696c74696e5f5f0a73"
     "65740a7116285d71174b0761747118527119752e"},
    {2,
     "80027d71002858040000006e6f6e6571014e580300000079657371028858020000006e6f7103895808000000696e74656765727371045d710"
     "5284b004affffffff4bff4a000001004a000000808a060000000000018a0800000000000000408a0800000000000000808a09000000000000"
     "0080006558040000007265616c7106473ff800000000000058040000007465787471075804000000c3a90a5c7108580500000062797465737"
     "109635f636f646563730a656e636f64650a710a580300000000c3bf710b58060000006c6174696e31710c86710d52710e5805000000747570"
     "6c65710f284b014b024b034b047471105805000000656d70747971115d7112285d71137d7114296558030000007365747115635f5f6275696"
     "c74696e5f5f0a7365740a71165d71174b0761857118527119752e"},
    {3,
     "80037d71002858040000006e6f6e6571014e580300000079657371028858020000006e6f7103895808000000696e74656765727371045d710"
     "5284b004affffffff4bff4a000001004a000000808a060000000000018a0800000000000000408a0800000000000000808a09000000000000"
     "0080006558040000007265616c7106473ff800000000000058040000007465787471075804000000c3a90a5c7108580500000062797465737"
     "109430200ff710a58050000007475706c65710b284b014b024b034b0474710c5805000000656d707479710d5d710e285d710f7d7110296558"
     "030000007365747111636275696c74696e730a7365740a71125d71134b0761857114527115752e"},
    {4,
     "800495be000000000000007d94288c046e6f6e65944e8c0379657394888c026e6f94898c08696e746567657273945d94284b004affffffff4"
     "bff4a000001004a000000808a060000000000018a0800000000000000408a0800000000000000808a09000000000000008000658c04726561"
     "6c94473ff80000000000008c0474657874948c04c3a90a5c948c05627974657394430200ff948c057475706c6594284b014b024b034b04749"
     "48c05656d707479945d94285d947d9429658c03736574948f94284b0790752e"},
    {5,
     "800595be000000000000007d94288c046e6f6e65944e8c0379657394888c026e6f94898c08696e746567657273945d94284b004affffffff4"
     "bff4a000001004a000000808a060000000000018a0800000000000000408a0800000000000000808a09000000000000008000658c04726561"
     "6c94473ff80000000000008c0474657874948c04c3a90a5c948c05627974657394430200ff948c057475706c6594284b014b024b034b04749"
     "48c05656d707479945d94285d947d9429658c03736574948f94284b0790752e"},
};

class EveryProtocol : public testing::TestWithParam<Written> {};

TEST_P(EveryProtocol, BuildsTheValues) {
  std::string pickle = unhex(GetParam().hex);
  if (GetParam().protocol < 2) {
    // Protocols 0 and 1 write 2**63 as a decimal number of more than 64 bits; it is refused, not rounded.
    expect_refused(pickle, "9223372036854775808");
    const size_t number = pickle.find("9223372036854775808L", pickle.find("-9223372036854775808L") + 5);
    pickle.replace(number, 20, "9223372036854775807L");
  }
  const PickleDocument d = read_pickle(pickle, "p");
  const PickleValue root = d.root();
  ASSERT_TRUE(root.is(PickleKind::dict));
  EXPECT_EQ(d.size(root), 10u);
  EXPECT_TRUE(at(d, root, "none").is(PickleKind::none));
  EXPECT_EQ(d.boolean(at(d, root, "yes")), true);
  EXPECT_EQ(d.boolean(at(d, root, "no")), false);
  EXPECT_EQ(d.real(at(d, root, "real")), 1.5);
  EXPECT_EQ(d.text(at(d, root, "text")), "\xc3\xa9\n\\");
  EXPECT_EQ(d.text(at(d, root, "bytes")), "\0\xff"s);
  const std::vector<int64_t> expected{0, -1, 255, 65536, INT32_MIN, int64_t{1} << 40, int64_t{1} << 62, INT64_MIN};
  const auto integers = members(d, at(d, root, "integers"));
  ASSERT_EQ(integers.size(), 9u);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(d.integer(integers[i]), expected[i]) << i;
  if (GetParam().protocol >= 2) {
    EXPECT_TRUE(integers[8].is(PickleKind::big_integer));
    EXPECT_EQ(d.text(integers[8]), "\0\0\0\0\0\0\0\x80\0"s);
  }
  const auto tuple = members(d, at(d, root, "tuple"));
  ASSERT_EQ(tuple.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(d.integer(tuple[i]), static_cast<int64_t>(i) + 1);
  const auto empty = members(d, at(d, root, "empty"));
  ASSERT_EQ(empty.size(), 3u);
  for (const PickleValue value : empty) EXPECT_EQ(d.size(value), 0u);
  EXPECT_TRUE(empty[0].is(PickleKind::list) && empty[1].is(PickleKind::dict) && empty[2].is(PickleKind::tuple));
  const PickleValue set = at(d, root, "set");
  EXPECT_TRUE(set.is(PickleKind::set));
  ASSERT_EQ(members(d, set).size(), 1u);
  EXPECT_EQ(d.integer(members(d, set)[0]), 7);
  EXPECT_TRUE(looks_like_pickle(pickle));
}

TEST_P(EveryProtocol, EveryPrefixIsRefused) {
  const std::string pickle = unhex(GetParam().hex);
  for (size_t size = 0; size < pickle.size(); ++size)
    EXPECT_THROW(read_pickle(std::string_view(pickle).substr(0, size), "cut"), Error) << size;
}

TEST_P(EveryProtocol, EveryChangedByteIsReadOrRefused) {
  const std::string pickle = unhex(GetParam().hex);
  for (size_t i = 0; i < pickle.size(); ++i)
    for (int change = 1; change < 256; change += 3) {
      std::string changed = pickle;
      changed[i] = static_cast<char>(changed[i] ^ change);
      try {
        const PickleDocument d = read_pickle(changed, "changed");
        for (const PickleValue value : members(d, d.root())) d.text(value);
      } catch (const Error&) {
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Protocols, EveryProtocol, testing::ValuesIn(kWritten),
                         [](const auto& info) { return std::to_string(info.param.protocol); });

// The output of torch::jit::Pickler: protocol 2, memo numbers in one or four bytes, integers of eight bytes.
TEST(Pickle, ReadsPyTorchsOwnPickler) {
  const std::string pickle =
      "\x80\x02}q\0(X\x04\0\0\0sizeq\x01\x8a\x08\0\0\0\0\x01\0\0\0X\x06\0\0\0framesq\x02]q\x03("s +
      "}r\x04\0\0\0(X\x04\0\0\0line\x4d\x39\x05ue"s + "X\x04\0\0\0time\x47\x3f\xf8\0\0\0\0\0\0u."s;
  const PickleDocument d = read_pickle(pickle, "p");
  EXPECT_EQ(d.integer(at(d, d.root(), "size")), int64_t{1} << 32);
  const auto frames = members(d, at(d, d.root(), "frames"));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(d.integer(at(d, frames[0], "line")), 1337);
  EXPECT_EQ(d.real(at(d, d.root(), "time")), 1.5);
}

TEST(Pickle, ReadsPython2) {
  const PickleDocument d =
      read_pickle("(dp1\nS'it\\'s \\x41\\101\\n'\np2\nI01\nsVcaf\\u00e9\np3\nL12L\nsg2\nF-2.5e3\ns.", "p");
  EXPECT_EQ(d.real(at(d, d.root(), "it's AA\n")), -2500);  // the later entry
  EXPECT_EQ(d.integer(at(d, d.root(), "caf\xc3\xa9")), 12);
  EXPECT_EQ(d.size(d.root()), 3u);
}

TEST(Pickle, SharedAndCyclicValuesAreOneContainer) {
  // x = []; x.append(x); {'a': x, 'b': x}
  const std::string pickle = "\x80\x04}(\x8c\x01\x61]\x94h\0a\x8c\x01\x62h\0u."s;
  const PickleDocument d = read_pickle(pickle, "p");
  const PickleValue a = at(d, d.root(), "a"), b = at(d, d.root(), "b");
  EXPECT_TRUE(a == b);
  EXPECT_EQ(d.container_number(a), d.container_number(b));
  ASSERT_EQ(d.size(a), 1u);
  EXPECT_TRUE(members(d, a)[0] == a);
}

TEST(Pickle, MembersAppendedLaterAreSeenByEveryReference) {
  // x = [1]; y = [x, x] ; then x.append(2) through the memo
  const std::string pickle = "\x80\x02]q\0K\x01\x61(h\0h\0lq\x01h\0K\x02\x61\x30."s;
  const PickleDocument d = read_pickle(pickle, "p");
  for (const PickleValue x : members(d, d.root())) EXPECT_EQ(d.size(x), 2u);
}

TEST(Pickle, AMemoBombStaysSmall) {
  std::string pickle = "\x80\x02]q\0"s;
  for (int level = 1; level < 200; ++level) {
    pickle += "]q"s + static_cast<char>(level) + "(";
    for (int i = 0; i < 50; ++i) pickle += "h"s + static_cast<char>(level - 1);
    pickle += "e";
  }
  pickle += ".";
  const PickleDocument d = read_pickle(pickle, "bomb");
  EXPECT_EQ(d.container_count(), 200u);
  EXPECT_EQ(d.size(d.root()), 50u);
}

TEST(Pickle, EachOfManyTextsIsFoundAndStoredOnce) {
  constexpr int kTexts = 50000;
  std::string pickle = "](";
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kTexts; ++i) pickle += "Vtext" + std::to_string(i) + "\n";
  pickle += "e.";
  const PickleDocument d = read_pickle(pickle, "texts");
  const auto texts = members(d, d.root());
  ASSERT_EQ(texts.size(), 2u * kTexts);
  for (int i = 0; i < kTexts; ++i) {
    const auto at = static_cast<size_t>(i);
    const std::string text = "text" + std::to_string(i);
    ASSERT_EQ(d.text(texts[at]), text);
    ASSERT_TRUE(texts[at] == texts[at + kTexts]);
    ASSERT_TRUE(d.text_value(text) == texts[at]);
  }
  EXPECT_FALSE(d.text_value("text50000").has_value());
}

TEST(Pickle, NestingHasNoLimitButTheFile) {
  const size_t depth = 300000;
  const std::string lists = std::string(depth, ']') + std::string(depth - 1, 'a') + ".";
  const std::string tuples = std::string(depth, '(') + std::string(depth, 't') + ".";
  const PickleDocument d = read_pickle(lists, "deep"), marks = read_pickle(tuples, "deep");
  EXPECT_EQ(d.container_count(), depth);
  EXPECT_EQ(d.size(d.root()), 1u);
  EXPECT_EQ(marks.container_count(), depth);
}

TEST(Pickle, CallablesAreRefusedByNameAndNeverCalled) {
  const std::string witness = testing::TempDir() + "headroom_pickle_witness";
  std::filesystem::remove(witness);
  const std::string command = "touch " + witness;
  expect_refused("cos\nsystem\n(S'" + command + "'\ntR.", "refers to os.system");
  expect_refused(
      "\x80\x02"
      "cposix\nsystem\nX\x04\0\0\0evil\x85R."s,
      "refers to posix.system");
  expect_refused(
      "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04"
      "evil\x85R."s,
      "refers to os.system");
  expect_refused(
      "\x80\x04\x8c\x08"
      "builtins\x8c\x04"
      "eval\x93."s,
      "refers to builtins.eval");
  expect_refused("(S'evil'\nios\nsystem\n.", "builds a os.system");
  expect_refused("(c__builtin__\nset\nK\x01o.", "builds an object");
  expect_refused(
      "\x80\x02"
      "c__builtin__\nset\n)\x81."s,
      "builds an object");
  expect_refused("\x80\x02}}b.", "builds an object");
  expect_refused("Ppersistent\n.", "outside itself");
  expect_refused("K\x01Q.", "outside itself");
  expect_refused("\x80\x02\x82\x01."s, "outside itself");
  expect_refused("\x80\x05\x97."s, "outside itself");
  expect_refused("c__builtin__\nset\n(K\x01tR.", "calls __builtin__.set with an integer");
  expect_refused("c_codecs\nencode\n(V\\u0100\ntR.", "above U+00FF");
  EXPECT_FALSE(std::filesystem::exists(witness));
}

TEST(Pickle, OrderedDictionariesAreDictionaries) {
  const std::string pickle =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(X\x01\0\0\0aK\x01u."s;
  const PickleDocument d = read_pickle(pickle, "p");
  ASSERT_TRUE(d.root().is(PickleKind::dict));
  EXPECT_EQ(d.integer(at(d, d.root(), "a")), 1);
}

TEST(Pickle, MalformedProgramsAreRefusedAtTheirByte) {
  expect_refused("", "byte 0: the file ends");
  expect_refused("\x80\x06N.", "byte 0: protocol 6");
  expect_refused("\x80\x02\xff", "byte 2: opcode 0xff is not an opcode");
  expect_refused("a.", "finds no value on the stack");
  expect_refused(
      "K\x01K\x02"
      "a.",
      "needs a list and finds an integer");
  expect_refused("(K\x01t0.", "finds no value on the stack");
  expect_refused("e.", "finds no mark");
  expect_refused("(e.", "finds no list below the mark");
  expect_refused("](K\x01u.", "needs a dictionary and finds a list");
  expect_refused("}(K\x01u.", "a key without a value");
  expect_refused("}(K\x01K\x02K\x03u.", "a key without a value");
  expect_refused("h\x05.", "memo entry 5, which was never stored");
  expect_refused("g-1\n.", "memo entry's number is malformed");
  expect_refused("Ifive\n.", "'five' is not an integer");
  expect_refused("Fx\n.", "'x' is not a number");
  expect_refused("S'open\n.", "a quoted text has no end");
  expect_refused("V\\u12\n.", "malformed \\u escape");
  expect_refused("K\x01(.", "finds no value on the stack");
}

TEST(Pickle, LengthsBeyondTheFileAreRefusedWithoutAllocating) {
  expect_refused("X\xff\xff\xff\x7fx."s, "says that 2147483647 bytes follow, 2 are left");
  expect_refused("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s, "says that 18446744073709551615 bytes follow");
  expect_refused("\x96\0\0\0\0\0\0\0\x80."s, "bytes follow");
  expect_refused("\x8b\xff\xff\xff\xff."s, "negative length");
  expect_refused("\x80\x04\x95\xff\xff\xff\xff\0\0\0\0N."s, "bytes follow");
  const std::string pickle = "\x80\x02]r\xff\xff\xff\xff]r\0\0\0\0j\xff\xff\xff\xff."s;
  const PickleDocument far = read_pickle(pickle, "p");
  EXPECT_TRUE(far.root().is(PickleKind::list));
}

TEST(Pickle, NoTextLooksLikeOne) {
  EXPECT_TRUE(looks_like_pickle("\x80\x04\x95\x10\0\0\0\0"s));
  EXPECT_TRUE(looks_like_pickle("\x80\x02}q\0"s));
  EXPECT_TRUE(looks_like_pickle("(lp0\n"));
  EXPECT_TRUE(looks_like_pickle("]q\0("s));
  for (const char* text : {"", "(", "(dp", "(dpkg)", "[rank0]: Traceback", "{\"a\": 1}", "}\n", "]q: what",
                           "torch.cuda.OutOf", "(lpr) failed", "\x80 euro", "PK\x03\x04"})
    EXPECT_FALSE(looks_like_pickle(text)) << text;
}

}  // namespace
}  // namespace headroom
