(** The additive mechanism, and charge-then-draw. Probabilities stand in any ordered commutative monoid ([W]): the
    non-negative reals are one. [pow n] is q^n, q = e^(-1/scale): a factor of at most one. No axiom is used. *)
Require Import List ZArith Lia Arith.
Import ListNotations.

Section Weights.
Variable W : Type.
Variables (one : W) (mul : W -> W -> W) (le : W -> W -> Prop).
Hypothesis mul_one : forall x, mul one x = x.
Hypothesis mul_assoc : forall x y z, mul x (mul y z) = mul (mul x y) z.
Hypothesis mul_comm : forall x y, mul x y = mul y x.
Hypothesis le_refl : forall x, le x x.
Hypothesis le_trans : forall x y z, le x y -> le y z -> le x z.
Hypothesis le_mul : forall x y x' y', le x x' -> le y y' -> le (mul x y) (mul x' y').
Variable q : W.
Hypothesis q_less : le q one.

Fixpoint pow (n : nat) : W := match n with 0 => one | S k => mul q (pow k) end.
Lemma pow_plus m n : pow (m + n) = mul (pow m) (pow n).
Proof. induction m; simpl; [now rewrite mul_one | rewrite IHm; apply mul_assoc]. Qed.
Lemma pow_one n : le (pow n) one.
Proof. induction n; simpl; [apply le_refl |]. rewrite <- (mul_one one). now apply le_mul. Qed.
Lemma pow_le m n : n <= m -> le (pow m) (pow n).
Proof.
  intros H. replace m with ((m - n) + n) by lia. rewrite pow_plus. rewrite <- (mul_one (pow n)) at 2.
  apply le_mul; [apply pow_one | apply le_refl].
Qed.

(** * Discrete Laplace on integers: P(o | v) ∝ q^Σ|o_i - v_i|, the same constant for every v *)
Fixpoint dist (o v : list Z) : nat := match o, v with
  | x :: o, y :: v => Z.abs_nat (x - y) + dist o v | _, _ => 0 end.
Definition laplace (v o : list Z) : W := pow (dist o v).
Lemma dist_triangle o : forall v w, length v = length o -> length w = length o -> dist o v <= dist w v + dist o w.
Proof.
  induction o as [|x o IH]; intros [|y v] [|z w] Hv Hw; simpl in *; try lia.
  specialize (IH v w ltac:(lia) ltac:(lia)). lia.
Qed.
(** Neighbours' vectors at most d apart in l1: every output is at most q^-d = e^(d/scale) times as likely. *)
Theorem laplace_ratio d o v w : length v = length o -> length w = length o -> dist w v <= d ->
  le (mul (pow d) (laplace w o)) (laplace v o).
Proof.
  intros Hv Hw H. unfold laplace. rewrite <- pow_plus. apply pow_le. pose proof (dist_triangle o v w Hv Hw). lia.
Qed.

(** * Charge, then draw: an analyst who chooses each question by all answers before *)
Variables (DB O : Type) (neighbours : DB -> DB -> Prop).
Record mechanism := { loss : nat; density : DB -> O -> W;
  private : forall D D' o, neighbours D D' -> le (mul (pow loss) (density D' o)) (density D o) }.
Variable cap : nat.
Variable analyst : list (option O) -> mechanism.   (* a refusal is an answer, too: None *)

(** Likelihood of the answers [os] within [n] questions. A charge that does not fit is refused: nothing is drawn. *)
Fixpoint likelihood (D : DB) (n spent : nat) (seen : list (option O)) (os : list O) : W :=
  match n with
  | 0 => one
  | S n => let m := analyst seen in
      if spent + loss m <=? cap then match os with
        | [] => one
        | o :: os => mul (density m D o) (likelihood D n (spent + loss m) (Some o :: seen) os) end
      else likelihood D n spent (None :: seen) os
  end.
(** What is charged in the same run never exceeds the cap. *)
Fixpoint charged (n spent : nat) (seen : list (option O)) (os : list O) : nat :=
  match n with
  | 0 => spent
  | S n => let m := analyst seen in
      if spent + loss m <=? cap then match os with
        | [] => spent + loss m
        | o :: os => charged n (spent + loss m) (Some o :: seen) os end
      else charged n spent (None :: seen) os
  end.
Theorem never_above_cap n : forall spent seen os, spent <= cap -> charged n spent seen os <= cap.
Proof.
  induction n as [|n IH]; intros spent seen os H; simpl; auto.
  destruct (Nat.leb_spec (spent + loss (analyst seen)) cap); auto. destruct os; auto.
Qed.

Theorem filter_private n : forall D D' spent seen os, neighbours D D' -> spent <= cap ->
  le (mul (pow (cap - spent)) (likelihood D' n spent seen os)) (likelihood D n spent seen os).
Proof.
  assert (base : forall k, le (mul (pow k) one) one).
  { intros k. rewrite mul_comm, mul_one. apply pow_one. }
  induction n as [|n IH]; intros D D' spent seen os N H; simpl; auto.
  destruct (Nat.leb_spec (spent + loss (analyst seen)) cap) as [F | F]; auto. destruct os as [|o os]; auto.
  set (m := analyst seen) in *. set (l := likelihood D n (spent + loss m) (Some o :: seen) os).
  set (l' := likelihood D' n (spent + loss m) (Some o :: seen) os).
  replace (cap - spent) with (loss m + (cap - (spent + loss m))) by lia. rewrite pow_plus.
  replace (mul (mul (pow (loss m)) (pow (cap - (spent + loss m)))) (mul (density m D' o) l'))
    with (mul (mul (pow (loss m)) (density m D' o)) (mul (pow (cap - (spent + loss m))) l')).
  - apply le_mul; [apply private; auto | apply IH; auto].
  - rewrite <- !mul_assoc. f_equal. rewrite !mul_assoc. f_equal. apply mul_comm.
Qed.

(** All answers together: at most e^cap. *)
Corollary all_answers n D D' os : neighbours D D' -> le (mul (pow cap) (likelihood D' n 0 [] os)) (likelihood D n 0 [] os).
Proof. intros N. pose proof (filter_private n D D' 0 [] os N ltac:(lia)) as P. now rewrite Nat.sub_0_r in P. Qed.
End Weights.
