/** How to sign in: with a link that the command line prints. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { refused, signIn, tokenOf } from "../session.js";
import { t } from "../texts.js";
import { Command, Field, Problem } from "../ui/parts.js";

/** SignIn says which command prints a link, and takes one. */
export function SignIn(): JSX.Element {
  const [link, set] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (link.trim()) void signIn(tokenOf(link)).then(() => set(""));
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      {refused.value?.status === 401 ? (
        <p class="problem" role="alert">
          {t.signIn.refused}
        </p>
      ) : (
        <Problem failure={refused.value} />
      )}
      <p>{t.signIn.how}</p>
      <Command text={t.signIn.command} />
      <Field label={t.signIn.paste}>
        {(props) => (
          <input {...props} type="text" autocomplete="off" spellcheck={false} value={link} onInput={(e) => set(e.currentTarget.value)} />
        )}
      </Field>
      <button type="submit" class="primary">
        {t.signIn.button}
      </button>
    </form>
  );
}
