(** Rules of single files: slices, looked-up groups and frequencies, which [Plan.derive] does not use; a table joined with
    itself, which it does (Itself.v). *)
Require Import List Permutation Arith Lia Bool.
From Dpsql Require Import Near Ops.
Import ListNotations.

(** * disjoint_slices.py: each row of the table has a part in one branch at most *)
Theorem slices_stable {A B} (f g : A -> list B) m n k l l' :
  (forall x, length (f x) <= m) -> (forall x, length (g x) <= n) -> (forall x, f x = [] \/ g x = []) ->
  near k l l' -> near (Nat.max m n * k) (flat_map f l ++ flat_map g l) (flat_map f l' ++ flat_map g l').
Proof.
  intros Hf Hg D H.
  assert (E : forall xs, Permutation (flat_map (fun x => f x ++ g x) xs) (flat_map f xs ++ flat_map g xs)).
  { induction xs as [|x xs IH]; simpl; auto. rewrite IH, <- !app_assoc. apply Permutation_app_head. apply Permutation_app_swap_app. }
  eapply near_perm; [apply E | apply E |]. apply flat_map_stable; auto.
  intros x. rewrite app_length. specialize (Hf x). specialize (Hg x).
  pose proof (Nat.le_max_l m n). pose proof (Nat.le_max_r m n). destruct (D x) as [-> | ->]; simpl; lia.
Qed.

(** * disjoint_slices.py: SEMI or ANTI join of a table with itself on the same columns, of a promised frequency f *)
(** Two parts of one multiset differ in no more rows than it has. *)
Lemma near_parts {A} (M S T s t : list A) : Permutation M (S ++ s) -> Permutation M (T ++ t) -> near (length M) S T.
Proof.
  intros P Q. assert (E : Permutation (S ++ s) (T ++ t)) by (now rewrite <- P).
  destruct (refine S s T t E) as (w & x & y & z & H1 & H2 & H3 & H4). exists w, x, y. repeat split; auto.
  apply Permutation_length in P, H1, H2. rewrite app_length in *. lia.
Qed.
Section SelfJoin.
Context {A K : Type}.
Variable eqk : forall x y : K, {x = y} + {x <> y}.
Variable key : A -> K.
Variable out : list A -> list A.      (* what remains of the rows of one key: some of them, in any way *)
Hypothesis sub : forall b, exists rest, Permutation b (out b ++ rest).
Hypothesis out_perm : forall b b', Permutation b b' -> Permutation (out b) (out b').
Notation block := (block eqk key).
Variable f : nat.
Lemma out_nil : out [] = [].
Proof. destruct (sub []) as (rest & P). apply Permutation_nil in P. now apply app_eq_nil in P. Qed.

Lemma near_block (c r a : list A) : length (c ++ r) <= f -> length (c ++ a) <= f ->
  near (f * (length r + length a)) (out (c ++ r)) (out (c ++ a)).
Proof.
  rewrite !app_length. intros H1 H2. destruct (sub (c ++ r)) as (s & P). destruct (sub (c ++ a)) as (t & Q).
  destruct (Nat.eq_dec (length r + length a) 0) as [Z | Z].
  - destruct r, a; simpl in Z; try lia. apply near_refl.
  - apply near_weaken with (length (c ++ r ++ a)).
    + rewrite !app_length. destruct (Nat.eq_dec (length r + length a) 1) as [O | O]; [rewrite O; lia |].
      assert (2 * f <= f * (length r + length a)) by (rewrite (Nat.mul_comm 2 f); apply Nat.mul_le_mono_l; lia). lia.
    + apply (near_parts (c ++ r ++ a) _ _ (s ++ a) (t ++ r)).
      * rewrite app_assoc. etransitivity; [apply Permutation_app_tail; exact P |]. now rewrite <- app_assoc.
      * etransitivity; [apply Permutation_app_head; apply Permutation_app_comm |]. rewrite app_assoc.
        etransitivity; [apply Permutation_app_tail; exact Q |]. now rewrite <- app_assoc.
Qed.

Lemma sum_blocks ks l : NoDup ks -> sum (fun k => length (block k l)) ks <= length l.
Proof.
  intros N. induction l as [|x l IH]; cbn [length].
  - clear. induction ks; simpl; auto.
  - assert (E : sum (fun k => length (block k (x :: l))) ks <= sum (fun k => (if eqk (key x) k then 1 else 0) + length (block k l)) ks).
    { apply sum_le. intros k _. unfold Ops.block, has. simpl. destruct (eqk (key x) k); simpl; lia. }
    rewrite sum_plus in E.
    assert (F : sum (fun k => if eqk (key x) k then 1 else 0) ks <= 1).
    { clear - N. assert (Z : forall hs, ~ In (key x) hs -> sum (fun k => if eqk (key x) k then 1 else 0) hs = 0).
      { induction hs as [|h hs IH]; simpl; auto. intros H. destruct (eqk (key x) h); [subst; tauto | rewrite IH; tauto]. }
      induction N as [|k ks Hk _ IH]; simpl; auto. destruct (eqk (key x) k); [subst; rewrite Z; auto | lia]. }
    lia.
Qed.

(** k rows of the table differ, and in both of its states at most f agree on the columns: k·f rows change. *)
Theorem self_join_stable k l l' : near k l l' -> (forall v, length (block v l) <= f) -> (forall v, length (block v l') <= f) ->
  near (f * k) (by_key eqk key (fun _ => out) l) (by_key eqk key (fun _ => out) l').
Proof.
  intros (c & r & a & P & P' & L) F F'.
  set (ks := nodup eqk (map key (c ++ r ++ a))). assert (N : NoDup ks) by apply NoDup_nodup.
  assert (G0 : forall k : K, (fun _ : K => out) k [] = []) by (intros _; apply out_nil).
  assert (Gp : forall (k : K) x y, Permutation x y -> Permutation ((fun _ : K => out) k x) ((fun _ : K => out) k y)) by (intros _; apply out_perm).
  assert (I : forall x, incl x (c ++ r ++ a) -> incl (map key x) ks).
  { intros x Hx v Hv. unfold ks. rewrite nodup_In. apply in_map_iff in Hv. destruct Hv as (y & <- & Hy). apply in_map. auto. }
  eapply near_perm; [symmetry; etransitivity; [apply (by_key_perm eqk key _ G0 Gp _ _ P) | apply (by_key_over eqk key _ G0 ks (c ++ r) N)]
    | symmetry; etransitivity; [apply (by_key_perm eqk key _ G0 Gp _ _ P') | apply (by_key_over eqk key _ G0 ks (c ++ a) N)] |].
  - apply I. intros y Hy. rewrite !in_app_iff in *. tauto.
  - apply I. intros y Hy. rewrite !in_app_iff in *. tauto.
  - apply near_weaken with (sum (fun v => f * (length (block v r) + length (block v a))) ks).
    + assert (E : forall d : K -> nat, sum (fun v => f * d v) ks = f * sum d ks) by (intros d; clear; induction ks; simpl; lia).
      rewrite E. apply Nat.mul_le_mono_l. rewrite sum_plus. pose proof (sum_blocks ks r N). pose proof (sum_blocks ks a N). lia.
    + apply near_blocks. intros v _. specialize (F v). specialize (F' v).
      assert (Q : forall x y, Permutation x y -> length (block v x) = length (block v y)) by (intros; apply Permutation_length; now apply filter_perm).
      rewrite (Q _ _ P) in F. rewrite (Q _ _ P') in F'. unfold Ops.block in *. rewrite !filter_app in *. now apply near_block.
Qed.
End SelfJoin.

(** * truncate.py, private_aggregate.py: a LEFT join that looks up truncated or grouped rows by (some of) their columns.
    One row below changes at most b partners of a left row, and then no padded row but with the first or last one. *)
Section Padding.
Context {L R O A : Type}.
Variable m : L -> R -> bool.
Variable pair : L -> R -> O.
Variable pad : L -> O.
(** A change of the right side: it loses [r], gains [a], keeps [c]; p bounds partners and padded row of one left row. *)
Definition flips (l : L) (c r a : list R) : nat :=
  let k := length (filter (m l) c) in let x := length (filter (m l) r) in let y := length (filter (m l) a) in
  x + y + (if (k =? 0) && negb (Bool.eqb (x =? 0) (y =? 0)) then 1 else 0).
Lemma left_block_flips l c r a : near (flips l c r a) (left_block pair pad l (filter (m l) (c ++ r))) (left_block pair pad l (filter (m l) (c ++ a))).
Proof.
  unfold flips. rewrite !filter_app. destruct (filter (m l) c) as [|c0 cs] eqn:Ec; simpl.
  - destruct (filter (m l) r) as [|r0 rs], (filter (m l) a) as [|a0 as_]; simpl; try apply near_refl;
      apply near_length; simpl; rewrite ?map_length; simpl; lia.
  - rewrite Nat.add_0_r, !map_app. exists (pair l c0 :: map (pair l) cs), (map (pair l) (filter (m l) r)), (map (pair l) (filter (m l) a)).
    repeat split; auto. rewrite !map_length. lia.
Qed.
(** GROUP BY and "keep": at most one partner leaves and one comes: 2. "Drop": t leave, or t come: t + 1. *)
Lemma flips_swap l c r a : length (filter (m l) r) <= 1 -> length (filter (m l) a) <= 1 -> flips l c r a <= 2.
Proof.
  unfold flips. destruct (filter (m l) r) as [|? [|]], (filter (m l) a) as [|? [|]]; simpl; intros; try lia;
    destruct (length (filter (m l) c) =? 0); simpl; lia.
Qed.
Lemma flips_drop t l c r a : 1 <= t -> (r = [] \/ a = []) -> length r + length a <= t -> flips l c r a <= t + 1.
Proof.
  unfold flips. intros T E H.
  assert (F : forall x : list R, length (filter (m l) x) <= length x) by (induction x as [|x0 x IH]; simpl; auto; destruct (m l x0); simpl; lia).
  pose proof (F r). pose proof (F a). destruct (_ && _); lia.
Qed.
(** So p·f_L of them in all: only the left rows that look one of the changed rows up see anything. *)
Theorem padded_lookup p fl ls c r a :
  (forall l, flips l c r a <= p) -> 
  (length (filter (fun l => existsb (m l) (r ++ a)) ls) <= fl) ->
  near (p * fl) (left m pair pad ls (c ++ r)) (left m pair pad ls (c ++ a)).
Proof.
  intros Hp Hl. unfold left, lookup.
  apply near_weaken with (sum (fun l => if existsb (m l) (r ++ a) then p else 0) ls).
  - apply Nat.le_trans with (p * length (filter (fun l => existsb (m l) (r ++ a)) ls)); [| now apply Nat.mul_le_mono_l].
    clear. induction ls as [|l ls IH]; simpl; [lia |]. destruct (existsb _ _); simpl; lia.
  - apply near_blocks. intros l _. destruct (existsb (m l) (r ++ a)) eqn:E.
    + eapply near_weaken; [apply Hp | apply left_block_flips].
    + assert (Z : forall x, incl x (r ++ a) -> filter (m l) x = []).
      { intros x Hx. induction x as [|y x IH]; simpl; auto. destruct (m l y) eqn:M.
        - exfalso. assert (existsb (m l) (r ++ a) = true) by (apply existsb_exists; exists y; split; auto; apply Hx; now left). congruence.
        - apply IH. intros z Hz. apply Hx. now right. }
      rewrite !filter_app, (Z r), (Z a); [apply near_refl | |]; intros z Hz; apply in_or_app; auto.
Qed.
End Padding.

(** * join_multiplicity.py: how often values repeat in a join. [p]: the rows that agree with given values, none NULL. *)
Section Frequency.
Context {L R O : Type}.
Variable m : L -> R -> bool.
Variable pair : L -> R -> O.
Variable pad : L -> O.
Lemma count_flat {X Y} (p : Y -> bool) (f : X -> list Y) xs :
  length (filter p (flat_map f xs)) = sum (fun x => length (filter p (f x))) xs.
Proof. induction xs as [|x xs IH]; simpl; auto. rewrite filter_app, app_length, IH. auto. Qed.
Lemma count_split {X} (q : X -> bool) (d : X -> nat) c f xs : (forall x, q x = false -> d x = 0) -> (forall x, d x <= c) ->
  length (filter q xs) <= f -> sum d xs <= f * c.
Proof.
  intros H0 H1 H. apply Nat.le_trans with (length (filter q xs) * c); [| now apply Nat.mul_le_mono_r]. clear H.
  induction xs as [|x xs IH]; simpl; auto. specialize (H1 x). destruct (q x) eqn:E; simpl; [lia | rewrite (H0 x E); lia].
Qed.
(** Columns of the left side: as often as there, times the most partners; in a LEFT join a row stays at least once. *)
Theorem freq_left_of_left (pL : L -> bool) (p : O -> bool) f fR ls rs :
  (forall l r, p (pair l r) = pL l) -> (forall l, p (pad l) = pL l) ->
  length (filter pL ls) <= f -> (forall l, partners m l rs <= fR) ->
  length (filter p (left m pair pad ls rs)) <= f * Nat.max 1 fR.
Proof.
  intros H1 H2 Hf Hm. unfold left, lookup. rewrite count_flat. apply (count_split pL); auto.
  - intros l E. unfold left_block. destruct (filter (m l) rs) as [|r rest]; simpl; [now rewrite H2, E |].
    rewrite H1, E. clear - H1 E. induction rest as [|x rest IH]; simpl; auto. now rewrite H1, E.
  - intros l. specialize (Hm l). unfold partners in Hm. pose proof (Nat.le_max_l 1 fR). pose proof (Nat.le_max_r 1 fR).
    assert (F : forall (q : O -> bool) x, length (filter q x) <= length x) by (induction x as [|x0 x IH]; simpl; auto; destruct (q x0); simpl; lia).
    etransitivity; [apply F |]. unfold left_block. destruct (filter (m l) rs); simpl in *; [lia | rewrite map_length; lia].
Qed.
(** Columns of the right side, where padded rows agree with nothing (NULL). *)
Theorem freq_right_of_left (pR : R -> bool) (p : O -> bool) f fL ls rs :
  (forall l r, p (pair l r) = pR r) -> (forall l, p (pad l) = false) ->
  length (filter pR rs) <= f -> (forall r, seekers m r ls <= fL) ->
  length (filter p (left m pair pad ls rs)) <= f * fL.
Proof.
  intros H1 H2 Hf Hm. unfold left, lookup. rewrite count_flat.
  assert (E : sum (fun l => length (filter p (left_block pair pad l (filter (m l) rs)))) ls = sum (fun l => partners m l (filter pR rs)) ls).
  { apply sum_ext. intros l _. unfold partners.
    assert (C : forall xs, length (filter p (map (pair l) (filter (m l) xs))) = length (filter (m l) (filter pR xs))).
    { induction xs as [|x xs IH]; simpl; auto. destruct (m l x) eqn:M; simpl.
      - rewrite H1. destruct (pR x); simpl; rewrite ?M; simpl; auto.
      - destruct (pR x); simpl; rewrite ?M; auto. }
    rewrite <- C. unfold left_block. destruct (filter (m l) rs); simpl; [now rewrite H2 | auto]. }
  rewrite E, double_count. etransitivity; [apply (sum_most _ fL); auto |].
  rewrite Nat.mul_comm. now apply Nat.mul_le_mono_r.
Qed.
End Frequency.
