// What other packages may use of the model package, name by name.

export { type Conversation, type LocalConversation, type ModelDigests, openConversation, type RenderedMessages } from './conversation.ts';
export { JinjaTemplate } from './jinja/jinja.ts';
export { appendNext, renderNext, renderResults } from './ledger/branch.ts';
export { chooseResultRoom, chooseTurnTokens, fitResults } from './ledger/budget.ts';
export { Ledger, type Rendered } from './ledger/ledger.ts';
export { modelConfig } from './model-config.ts';
export { type ModelReport, reportModel } from './model-report.ts';
export { isAddress, openModel } from './open-model.ts';
export { parseLongTurn } from './read-turn.ts';
export { openTokenizer, runSteps, type Tokenizer } from './tokenizer/tokenizer.ts';
export { readTokenizerFiles } from './tokenizer/tokenizer-files.ts';
export { toCallId } from './tool-calls/tool-calls.ts';
export { toolParserNames, toolParsers } from './tool-calls/tool-parsers.ts';
export { isShownAs, TurnStream } from './turn-stream/turn-stream.ts';
