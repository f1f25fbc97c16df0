// What the words of a log and of a command say about the program: that it only infers, its framework, its inputs.
#pragma once

#include <string>
#include <string_view>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

// All texts are in lower case.

// The word that shows that the program only infers or serves (a user interface, a chat, a recogniser), if nothing says
// that it trains; else empty.
std::string_view plain_inference(const std::string& log, const std::string& setup, const Story& story);
// "paddle" or "tensorflow" if the text names it or a program that uses it, and does not name PyTorch; else empty.
std::string_view named_framework(const std::string& log, const std::string& setup);
// The word that shows that the inputs are recordings; empty if there is none.
std::string_view speech_word(std::string_view log);
// Whether the text prints a version of PyTorch before 2.0.
bool prints_torch_1(std::string_view log);
// Whether a remedy's text is code or an option for PyTorch or a library built on it.
bool written_for_pytorch(std::string_view set);

}  // namespace headroom::doctor
