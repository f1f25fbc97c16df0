// What normalizers do to single characters. The sets are those of HF tokenizers 0.23, whose normalizers follow
// different versions of Unicode.
#include "tokenizer/normalizer_steps.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

using namespace unicode;

bool is_chinese(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B81F) ||
         (code >= 0x2B920 && code <= 0x2CEAF) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0x2F800 && code <= 0x2FA1F);
}

char32_t lower_case(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 0x20 : code;
  const CaseRun* end = lowercase_runs + lowercase_runs_size;
  const auto less = [](const CaseRun& run, char32_t value) { return run.last < value; };
  const CaseRun* run = std::lower_bound(lowercase_runs, end, code, less);
  if (run == end || code < run->first || (code - run->first) % run->step != 0) return code;
  return static_cast<char32_t>(static_cast<int32_t>(code) + run->offset);
}

}  // namespace

void clean_character(char32_t code, std::string& out) {
  if (code > 0x20 && code < 0x7F) {
    out.push_back(static_cast<char>(code));
  } else if (code == '\t' || code == '\n' || code == '\r') {
    out.push_back(' ');
  } else if (code == 0xFFFD || find_run(bert_controls, bert_controls_size, code) != nullptr) {
    return;
  } else {
    append_utf8(is_space(code) ? ' ' : code, out);
  }
}

void space_chinese_character(char32_t code, std::string& out) {
  if (!is_chinese(code)) return append_utf8(code, out);
  out.push_back(' ');
  append_utf8(code, out);
  out.push_back(' ');
}

void strip_bert_accent(char32_t code, std::string& out) {
  if (code < 0x300 || find_run(bert_accents, bert_accents_size, code) == nullptr) append_utf8(code, out);
}

void lowercase_character(char32_t code, std::string& out) {
  if (code == 0x130)
    out += "i\u0307";  // the only one that becomes two characters
  else
    append_utf8(lower_case(code), out);
}

void strip_accent(char32_t code, std::string& out) {
  if (code < 0x300 || find_run(accent_marks, accent_marks_size, code) == nullptr) append_utf8(code, out);
}

void nmt_character(char32_t code, std::string& out) {
  const bool dropped = (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) ||
                       code == 0x7F || code == 0x8F || code == 0x9F;
  if (dropped) return;
  const bool space = (code >= 0x09 && code <= 0x0D) || code == 0x1680 || (code >= 0x200B && code <= 0x200F) ||
                     code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
  append_utf8(space ? ' ' : code, out);
}

}  // namespace headroom
