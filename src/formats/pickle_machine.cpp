#include "formats/pickle_machine.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "formats/pickle_text.h"

namespace headroom {
namespace {

// Text from the file for a message: printable, at most 80 bytes.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out += c >= ' ' && c < 0x7f ? c : '?';
  return out;
}

}  // namespace

PickleDocument PickleMachine::run() {
  std::array<Handler, 256> handlers{};
  for (const Row& row : rows()) handlers[row.opcode] = row.handler;
  constexpr uint8_t kStop = '.';
  while ((opcode_ = in_.opcode()) != kStop) {
    const Handler handler = handlers[opcode_];
    if (handler == nullptr)
      in_.fail(fmt::format("{} is not an opcode of protocols 0 to 5", pickle_opcode_name(opcode_)));
    (this->*handler)();
  }
  document_.set_root(pop());
  return std::move(document_);
}

PickleValue PickleMachine::pop() {
  const PickleValue value = top();
  stack_.pop_back();
  return value;
}

PickleValue& PickleMachine::top() {
  if (stack_.size() <= floor()) in_.fail(fmt::format("{} finds no value on the stack", pickle_opcode_name(opcode_)));
  return stack_.back();
}

std::span<const PickleValue> PickleMachine::above_mark() const {
  if (marks_.empty()) in_.fail(fmt::format("{} finds no mark on the stack", pickle_opcode_name(opcode_)));
  return std::span<const PickleValue>(stack_).subspan(marks_.back());
}

void PickleMachine::drop_mark() {
  if (marks_.empty()) in_.fail(fmt::format("{} finds no mark on the stack", pickle_opcode_name(opcode_)));
  stack_.resize(marks_.back());
  marks_.pop_back();
}

void PickleMachine::need(PickleValue value, PickleKind kind) {
  if (!value.is(kind))
    in_.fail(fmt::format("{} needs {} and finds {}", pickle_opcode_name(opcode_), pickle_kind_name(kind),
                         pickle_kind_name(value.kind())));
}

template <PickleKind kind>
void PickleMachine::push_marked() {
  const auto members = above_mark();
  const PickleValue made = document_.make_container(kind);
  if constexpr (kind == PickleKind::dict) {
    if (members.size() % 2 != 0) in_.fail("a dictionary has a key without a value");
    document_.append_entries(made, members.data(), members.size() / 2);
  } else {
    document_.append(made, members.data(), members.size());
  }
  drop_mark();
  push(made);
}

template <int count>
void PickleMachine::push_tuple() {
  std::array<PickleValue, count> members;
  for (int i = count; i-- > 0;) members[static_cast<size_t>(i)] = pop();
  const PickleValue made = document_.make_container(PickleKind::tuple);
  document_.append(made, members.data(), count);
  push(made);
}

template <int width>
void PickleMachine::push_long() {
  const uint64_t size = in_.number(width);
  if (width == 4 && size > INT32_MAX) in_.fail("an integer has a negative length");
  const std::string_view bytes = in_.take(size);
  if (size > 8) return push(document_.make_text(PickleKind::big_integer, bytes));
  uint64_t value = size > 0 && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  push(document_.make_integer(static_cast<int64_t>(value)));
}

void PickleMachine::push_int32() {
  push(document_.make_integer(static_cast<int32_t>(static_cast<uint32_t>(in_.number(4)))));
}

void PickleMachine::push_float() {
  uint64_t bits = 0;
  for (const char byte : in_.take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
  push(document_.make_real(std::bit_cast<double>(bits)));
}

void PickleMachine::push_float_line() {
  const std::string text(in_.line().substr(0, 400));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) in_.fail(fmt::format("'{}' is not a number", shown(text)));
  push(document_.make_real(value));
}

void PickleMachine::push_integer_line() {
  const std::string_view text = in_.line();
  if (opcode_ == 'I' && (text == "00" || text == "01")) return push(PickleDocument::make_boolean(text == "01"));
  const auto value = parse_pickled_integer(text);
  if (!value) in_.fail(fmt::format("'{}' is not an integer of 64 bits", shown(text)));
  push(document_.make_integer(*value));
}

void PickleMachine::push_string_line() {
  const auto text = decode_quoted(in_.line());
  if (!text) in_.fail("a quoted text has no end");
  push(document_.make_text(PickleKind::text, *text, true));
}

void PickleMachine::push_unicode_line() {
  const auto text = decode_raw_unicode(in_.line());
  if (!text) in_.fail("a text holds a malformed \\u escape");
  push(document_.make_text(PickleKind::text, *text, true));
}

template <int width>
void PickleMachine::get() {
  recall(in_.number(width));
}

void PickleMachine::get_line() {
  const auto index = parse_pickled_integer(in_.line());
  if (!index || *index < 0) in_.fail("a memo entry's number is malformed");
  recall(static_cast<uint64_t>(*index));
}

void PickleMachine::put_line() {
  const auto index = parse_pickled_integer(in_.line());
  if (!index || *index < 0) in_.fail("a memo entry's number is malformed");
  remember(static_cast<uint64_t>(*index));
}

void PickleMachine::remember(uint64_t index) {
  if (memo_.empty() && sparse_memo_.empty()) first_memo_ = index;
  const uint64_t at = index - first_memo_;
  const PickleValue value = top();
  if (index >= first_memo_ && at < memo_.size()) {
    memo_[at] = value;
  } else if (index >= first_memo_ && at == memo_.size() && sparse_memo_.count(index) == 0) {
    memo_.push_back(value);
  } else {
    sparse_memo_[index] = value;
  }
}

void PickleMachine::recall(uint64_t index) {
  if (index >= first_memo_ && index - first_memo_ < memo_.size()) return push(memo_[index - first_memo_]);
  const auto at = sparse_memo_.find(index);
  if (at == sparse_memo_.end()) in_.fail(fmt::format("refers to memo entry {}, which was never stored", index));
  push(at->second);
}

void PickleMachine::pop_one() {
  if (!marks_.empty() && marks_.back() == stack_.size()) return marks_.pop_back();
  pop();
}

void PickleMachine::append_one() {
  const PickleValue member = pop();
  need(top(), PickleKind::list);
  document_.append(top(), &member, 1);
}

void PickleMachine::append_marked() {
  const auto members = above_mark();
  if (marks_.back() == 0) in_.fail("finds no list below the mark");
  const PickleValue list = stack_[marks_.back() - 1];
  need(list, PickleKind::list);
  document_.append(list, members.data(), members.size());
  drop_mark();
}

void PickleMachine::set_item() {
  std::array<PickleValue, 2> entry;
  entry[1] = pop();
  entry[0] = pop();
  need(top(), PickleKind::dict);
  document_.append_entries(top(), entry.data(), 1);
}

void PickleMachine::set_items() {
  const auto entries = above_mark();
  if (marks_.back() == 0) in_.fail("finds no dictionary below the mark");
  const PickleValue dict = stack_[marks_.back() - 1];
  need(dict, PickleKind::dict);
  if (entries.size() % 2 != 0) in_.fail("a dictionary has a key without a value");
  document_.append_entries(dict, entries.data(), entries.size() / 2);
  drop_mark();
}

void PickleMachine::add_items() {
  const auto members = above_mark();
  if (marks_.back() == 0) in_.fail("finds no set below the mark");
  const PickleValue set = stack_[marks_.back() - 1];
  need(set, PickleKind::set);
  document_.append(set, members.data(), members.size());
  drop_mark();
}

void PickleMachine::protocol() {
  const uint64_t version = in_.number(1);
  if (version > 5) in_.fail(fmt::format("protocol {} is not known; 0 to 5 are", version));
}

void PickleMachine::global_line() {
  const std::string_view module = in_.line();
  global(module, in_.line());
}

void PickleMachine::global_stack() {
  const PickleValue name = pop(), module = pop();
  need(name, PickleKind::text);
  need(module, PickleKind::text);
  global(document_.text(module), document_.text(name));
}

// Accepts only callables whose result is known without calling them.
void PickleMachine::global(std::string_view module, std::string_view name) {
  const std::string full = std::string(module) + "." + std::string(name);
  for (const char* harmless : {"collections.OrderedDict", "builtins.set", "builtins.frozenset", "builtins.bytes",
                               "__builtin__.set", "__builtin__.frozenset", "__builtin__.bytes", "_codecs.encode"})
    if (full == harmless) return push(document_.make_text(PickleKind::callable, harmless));
  in_.refuse(fmt::format("refers to {}, which a memory snapshot never does", shown(full)));
}

void PickleMachine::reduce() {
  const PickleValue arguments = pop(), callable = pop();
  need(callable, PickleKind::callable);
  need(arguments, PickleKind::tuple);
  const std::string_view name = document_.text(callable);
  auto cursor = document_.members(arguments);
  if (cursor.done() && name == "collections.OrderedDict") return push(document_.make_container(PickleKind::dict));
  if (cursor.done() && name.substr(name.size() - 5) == "bytes") return push(document_.make_text(PickleKind::bytes, ""));
  if (cursor.done()) in_.refuse(fmt::format("calls {} without arguments", name));
  const PickleValue first = cursor.value();
  if (name.substr(name.size() - 3) == "set" && first.is(PickleKind::list))
    return push(PickleDocument::seen_as(PickleKind::set, first));
  if (name == "_codecs.encode" && first.is(PickleKind::text)) return push(latin1(first));
  in_.refuse(fmt::format("calls {} with {}", name, pickle_kind_name(first.kind())));
}

PickleValue PickleMachine::latin1(PickleValue text) {
  const std::string_view content = document_.text(text);
  const auto known = latin1_.find(content);
  if (known != latin1_.end()) return known->second;
  const auto bytes = encode_latin1(content);
  if (!bytes) in_.fail("bytes written as text hold a character above U+00FF");
  const PickleValue made = document_.make_text(PickleKind::bytes, *bytes, true);
  latin1_.emplace(content, made);
  return made;
}

void PickleMachine::refuse_call() { in_.refuse("builds an object of a class, which a memory snapshot never does"); }

void PickleMachine::refuse_instance() {
  const std::string module(in_.line());
  in_.refuse(fmt::format("builds a {}.{}, which a memory snapshot never does", shown(module), shown(in_.line())));
}

void PickleMachine::refuse_outside() {
  in_.refuse("refers to objects or buffers outside itself, which a memory snapshot never does");
}

std::span<const PickleMachine::Row> PickleMachine::rows() {
  using M = PickleMachine;
  using K = PickleKind;
  static constexpr Row kRows[] = {
      {0x80, &M::protocol},
      {0x95, &M::frame},
      {'(', &M::mark},
      {'0', &M::pop_one},
      {'1', &M::drop_mark},
      {'2', &M::duplicate},
      {'N', &M::push_none},
      {0x88, &M::push_boolean<true>},
      {0x89, &M::push_boolean<false>},
      {'I', &M::push_integer_line},
      {'L', &M::push_integer_line},
      {'J', &M::push_int32},
      {'K', &M::push_unsigned<1>},
      {'M', &M::push_unsigned<2>},
      {0x8a, &M::push_long<1>},
      {0x8b, &M::push_long<4>},
      {'F', &M::push_float_line},
      {'G', &M::push_float},
      {'S', &M::push_string_line},
      {'V', &M::push_unicode_line},
      {'T', &M::push_counted<K::text, 4>},
      {'U', &M::push_counted<K::text, 1>},
      {'X', &M::push_counted<K::text, 4>},
      {0x8c, &M::push_counted<K::text, 1>},
      {0x8d, &M::push_counted<K::text, 8>},
      {'B', &M::push_counted<K::bytes, 4>},
      {'C', &M::push_counted<K::bytes, 1>},
      {0x8e, &M::push_counted<K::bytes, 8>},
      {0x96, &M::push_counted<K::bytes, 8>},
      {']', &M::push_empty<K::list>},
      {'}', &M::push_empty<K::dict>},
      {')', &M::push_empty<K::tuple>},
      {0x8f, &M::push_empty<K::set>},
      {'l', &M::push_marked<K::list>},
      {'d', &M::push_marked<K::dict>},
      {'t', &M::push_marked<K::tuple>},
      {0x91, &M::push_marked<K::set>},
      {0x85, &M::push_tuple<1>},
      {0x86, &M::push_tuple<2>},
      {0x87, &M::push_tuple<3>},
      {'a', &M::append_one},
      {'e', &M::append_marked},
      {'s', &M::set_item},
      {'u', &M::set_items},
      {0x90, &M::add_items},
      {'g', &M::get_line},
      {'h', &M::get<1>},
      {'j', &M::get<4>},
      {'p', &M::put_line},
      {'q', &M::put<1>},
      {'r', &M::put<4>},
      {0x94, &M::memoize},
      {'c', &M::global_line},
      {0x93, &M::global_stack},
      {'R', &M::reduce},
      {'b', &M::refuse_call},
      {'o', &M::refuse_call},
      {0x81, &M::refuse_call},
      {0x92, &M::refuse_call},
      {'i', &M::refuse_instance},
      {'P', &M::refuse_outside},
      {'Q', &M::refuse_outside},
      {0x82, &M::refuse_outside},
      {0x83, &M::refuse_outside},
      {0x84, &M::refuse_outside},
      {0x97, &M::refuse_outside},
      {0x98, &M::refuse_outside},
  };
  return kRows;
}

}  // namespace headroom
