// What the command says: results on standard output, complaints on standard error, one sentence each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitsmith {

// Before anything else: a closed pipe becomes a write error instead of a signal, and no file that is opened
// later can take the place of a closed standard stream and have text printed into it.
void prepare_standard_streams();

// Writes to standard output. A failure is not thrown, for what the command does is not worth less when nobody
// listens; finish_output() tells.
void print(std::string_view text);

// "jitsmith: SENTENCE" on standard error.
void complain(std::string_view sentence);

bool stdout_is_terminal();

// `status`, or k_failure when something could not be written to standard output.
int finish_output(int status);

std::string size_text(std::uint64_t bytes);  // "12.3 KiB"

}  // namespace jitsmith
