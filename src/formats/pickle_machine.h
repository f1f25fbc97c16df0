// The stack machine that runs a pickle's opcodes; it cannot call anything.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle_document.h"
#include "formats/pickle_input.h"

namespace headroom {

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& source) : in_(bytes, source) {}
  // Runs to STOP. Call once.
  PickleDocument run();

 private:
  using Handler = void (PickleMachine::*)();
  struct Row {
    uint8_t opcode;
    Handler handler;
  };
  static std::span<const Row> rows();

  void push(PickleValue value) { stack_.push_back(value); }
  PickleValue pop();
  PickleValue& top();
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::span<const PickleValue> above_mark() const;  // fails if there is no mark
  void drop_mark();                                 // and everything above it
  void need(PickleValue value, PickleKind kind);

  template <bool value>
  void push_boolean() {
    push(PickleDocument::make_boolean(value));
  }
  template <int width>
  void push_unsigned() {
    push(document_.make_integer(static_cast<int64_t>(in_.number(width))));
  }
  template <PickleKind kind, int width>
  void push_counted() {
    push(document_.make_text(kind, in_.take(in_.number(width))));
  }
  template <PickleKind kind>
  void push_empty() {
    push(document_.make_container(kind));
  }
  template <PickleKind kind>
  void push_marked();  // the list, tuple, set or dictionary of everything above the mark
  template <int count>
  void push_tuple();
  template <int width>
  void push_long();
  template <int width>
  void get();
  template <int width>
  void put() {
    remember(in_.number(width));
  }

  void push_none() { push(PickleValue()); }
  void push_int32();
  void push_float();
  void push_float_line();
  void push_integer_line();
  void push_string_line();
  void push_unicode_line();
  void get_line();
  void put_line();
  void memoize() { remember(memo_.size() + sparse_memo_.size()); }
  void remember(uint64_t index);
  void recall(uint64_t index);

  void mark() { marks_.push_back(stack_.size()); }
  void pop_one();
  void duplicate() { push(top()); }
  void append_one();
  void append_marked();
  void set_item();
  void set_items();
  void add_items();

  void protocol();
  void frame() { in_.require(in_.number(8)); }
  void global_line();
  void global_stack();
  void global(std::string_view module, std::string_view name);
  void reduce();
  void refuse_call();
  void refuse_instance();
  void refuse_outside();
  PickleValue latin1(PickleValue text);

  PickleInput in_;
  uint8_t opcode_ = 0;
  PickleDocument document_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::vector<PickleValue> memo_;  // from index first_memo_ on, as all writers number it
  uint64_t first_memo_ = 0;
  std::map<uint64_t, PickleValue> sparse_memo_;
  std::map<std::string_view, PickleValue> latin1_;
};

}  // namespace headroom
